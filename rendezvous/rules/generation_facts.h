// What is known about a generation and is in no ledger entry yet: how far its workers have got,
// which workers failed, what else ended it, and a requested stop. The entry of a generation is
// written before any of this happens, and the decision about a restart depends on it (PROTOCOL.md,
// rule 16).
//
// The leader and every node keep these facts. A node learns some from its own workers, and the rest
// from the leader, whose Acks carry what is new. The Join of each new connection repeats all of
// them. So a lost leader takes no knowledge with it, and the next leader decides with the same
// facts. Hearing facts is idempotent and does not depend on their order.
//
// Pure; owned by the rendezvous machine and by the agent machine. Times are on the owner's clock.
// Messages (Facts in messages.h) carry how long ago each event was.
#pragma once

#include <algorithm>
#include <map>
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
    Reach reach() const { return reach_; }
    std::int64_t snapshot() const { return snapshot_; }  // newest reported; -1: none
    Time saved_at() const { return saved_at_; }  // when it was; kLongAgo: none, or not known
    Duration saving() const { return saving_; }  // what snapshots have taken from training
    const LimitsAsked& limits() const { return limits_; }
    const FirstFailure& failure() const { return failure_; }
    const std::optional<Interrupted>& interrupted() const { return interrupted_; }
    // Members that were silent since the first failure; empty: not judged yet.
    const std::optional<std::vector<NodeId>>& silent() const { return silent_; }
    // When any node last heard the leader that held this generation; kLongAgo: never.
    Time led() const { return led_; }
    // The planned stop as it is to be sent now, with the time that is left.
    std::optional<Stop> stop(Time now) const;

    // ---- what happens. True: it is news.
    bool reached(Reach reach);  // of several reports the highest counts
    bool saved(std::int64_t snapshot, Time at);
    bool saving(Duration took);  // of several sums the longest counts
    bool asked(const LimitsAsked& limits);
    bool failed(const std::string& node, const WorkerOutcome& outcome, Time at);
    // A worker of a generation that hangs has written where it was when it was ended for it. It
    // belongs to that failure.
    void wrote_at_its_end(const std::string& who, const WorkerOutcome& outcome) {
        failure_.add_to_hang(who, outcome);
    }
    // Of several interruptions the earliest counts.
    bool interrupt(const Interruption& what, Time at);
    bool not_heard(const std::vector<NodeId>& members);
    void stopping(const Stop& stop, Time now);
    void led_at(Time now) { led_ = std::max(led_, now); }

    // ---- telling others. Facts of another generation change nothing.
    void hear(const Facts& said, Time now);
    Facts all(Time now) const;
    // The part that every node gets: the first failure without its output, and no stop, since Stop
    // is a message of its own.
    Facts brief(Time now) const;
    std::int64_t revision() const { return revision_; }  // grows with each change of brief()

  private:
    bool note(bool news) {
        revision_ += news;
        return news;
    }

    Generation generation_ = kNoGeneration;
    Reach reach_ = Reach::start;
    std::int64_t snapshot_ = -1;
    Time saved_at_ = kLongAgo;
    Duration saving_{};
    LimitsAsked limits_;
    FirstFailure failure_;
    std::optional<Interrupted> interrupted_;
    std::optional<std::vector<NodeId>> silent_;
    std::optional<Stop> stop_;
    Time stop_at_{};
    Time led_ = kLongAgo;
    std::int64_t revision_ = 0;
};

// Facts about a generation whose entry this leader has not read yet. They count as soon as the
// leader knows the entry.
class EarlyFacts {
  public:
    void hear(const NodeId& node, const Facts& said, Time now) {
        GenerationFacts& known = facts_[node];
        if (known.generation() != said.generation) known = GenerationFacts(said.generation);
        known.hear(said, now);
    }
    std::map<NodeId, GenerationFacts> take() { return std::exchange(facts_, {}); }

  private:
    std::map<NodeId, GenerationFacts> facts_;
};

}  // namespace ddprun::rendezvous
