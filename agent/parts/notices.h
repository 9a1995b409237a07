// What the workers of a node can read on DDPRUN_EVENTS_FD, and in the worker store: losses of
// other workers and nodes, nodes that have come, a stop, a snapshot that is wanted. One line of
// JSON for each. The names in it never change (docs/pages/how-to/events.md). Pure.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "agent/parts/snapshot_hint.h"
#include "agent/parts/stop_policy.h"
#include "rendezvous/model/news.h"

namespace ddprun::agent {

// The workers get a signal next, and SIGKILL when the grace is over.
struct Stopping {
    std::string reason = "restart";  // or as in the stop file
    std::string sentence = {};
    int signal = 0;
    Duration grace{};
    bool requeue = false;
    bool operator==(const Stopping&) const = default;
};

using Notice = std::variant<rendezvous::NewsItem, Stopping, SnapshotHint>;

// Why workers are stopped, by the hint that the stop file has.
Stopping stopping_by(const StopHint& hint);

// Without its end. `now`: of day, since 1970. A sentence is cut, so that a line is shorter than
// kLongestNotice.
std::string to_line(const Notice& notice, Generation generation, Duration now);
inline constexpr std::size_t kLongestNotice = 2048;

// What a node has already passed on in a generation. The news of a node's own worker come back from
// the leader.
class PassedOn {
  public:
    // Whether this is the first time; it is noted.
    bool is_first(const rendezvous::NewsItem& item);

  private:
    std::vector<rendezvous::NewsItem> items_;
};

}  // namespace ddprun::agent
