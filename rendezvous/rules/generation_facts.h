// What is known of a generation that stands in no ledger entry yet, and on which depends whether the
// job is restarted: whether a worker has made progress, which have failed, what else has ended it,
// and a stop that was asked for. The entry of a generation is written before any of this happens.
//
// The leader and every node keep it. A node's own workers tell it some; the leader tells it the rest
// in an Ack when something is new; and the Join of each new connection says all of it. So a leader
// that is lost takes no knowledge with it, and whoever leads next decides the same. Hearing is
// idempotent and does not depend on the order.
//
// Pure; owned by the rendezvous machine and by the agent machine. Moments are on the owner's clock;
// what travels (Facts, messages.h) says how long ago they were.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/model/messages.h"
#include "rendezvous/rules/first_failure.h"

namespace ddprun::rendezvous {

class GenerationFacts {
  public:
    struct Interrupted {
        Interruption what;
        Time at{};
    };

    GenerationFacts() = default;
    explicit GenerationFacts(Generation generation) : generation_(generation) {}

    Generation generation() const { return generation_; }
    bool progressed() const { return progressed_; }
    std::int64_t snapshot() const { return snapshot_; }  // newest reported; -1: none
    const FirstFailure& failure() const { return failure_; }
    const std::optional<Interrupted>& interrupted() const { return interrupted_; }
    // Members of which nothing was heard since the first failure; none: not judged yet.
    const std::optional<std::vector<NodeId>>& silent() const { return silent_; }
    // When the leader that held it was heard last, by any node; kLongAgo: never.
    Time led() const { return led_; }
    // What all workers were told, as it is to be told now.
    std::optional<Stop> stop(Time now) const;

    // ---- what happens. True: it is news.
    bool made_progress() { return note(!std::exchange(progressed_, true)); }
    bool saved(std::int64_t snapshot);
    bool failed(const std::string& node, const WorkerOutcome& outcome, Time at);
    // The earliest counts.
    bool interrupt(const Interruption& what, Time at);
    bool not_heard(const std::vector<NodeId>& members);
    void stopping(const Stop& stop, Time now);
    void led_at(Time now) { led_ = std::max(led_, now); }

    // ---- telling others. Facts of another generation change nothing.
    void hear(const Facts& said, Time now);
    Facts all(Time now) const;
    // What every node is told: the first failure without its output, and no stop, which has a
    // message of its own.
    Facts brief(Time now) const;
    std::int64_t revision() const { return revision_; }  // grows with each change of brief()

  private:
    bool note(bool news) {
        revision_ += news;
        return news;
    }

    Generation generation_ = kNoGeneration;
    bool progressed_ = false;
    std::int64_t snapshot_ = -1;
    FirstFailure failure_;
    std::optional<Interrupted> interrupted_;
    std::optional<std::vector<NodeId>> silent_;
    std::optional<Stop> stop_;
    Time stop_at_{};
    Time led_ = kLongAgo;
    std::int64_t revision_ = 0;
};

}  // namespace ddprun::rendezvous
