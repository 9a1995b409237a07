// Watches whether all workers of the running generation stand still, and says who waits for whom.
// hangs/standstill.h judges it; here is when to ask the nodes where their workers are, and when to
// say it.
//
//     moves ──all stand still, for told_after()──▶ asking ──answers, or 10 s──▶ told
//       ▲─────────────────── anything moves ─────────────────┴───────────────────┘
//                                                 told again when it has lasted four times as long
//
// A standstill has ended by itself when the generation still lives five seconds later: the workers
// of a rank that dies move, too, and die of it. Then "the job goes on".
//
// With --hang-timeout a standstill may become a hang (is_hang()). One in which all wait for a rank
// outside may be a long evaluation, so it is learnt how long those were that have ended by
// themselves.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/hangs/call_mismatch.h"
#include "rendezvous/hangs/standstill.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class StandstillWatch {
  public:
    // Another generation has begun, or this one is over. What was learnt stays.
    void forget();

    // Whether this event asks for a look at the members. One that met many is followed by an eighth
    // as many events without: else each Beat of a large job that stands still costs as much as all
    // its nodes.
    bool looks();
    void met(std::size_t members) { events_left_out_ = members / 8; }

    // What is judged now. Returns a line when a standstill that was told has ended by itself.
    std::optional<std::string> judged(Time now, const std::optional<Standstill>& found);

    // Whether workers are to be asked where they are: it `hangs`, or is worth a line. Then ask()
    // returns their ranks; `nodes` have them.
    bool is_due(bool hangs) const;
    std::vector<int> ask(Time now);
    void asked(std::set<NodeId> nodes) { unanswered_ = std::move(nodes); }
    void answered(const NodeId& node, const Report& report);

    bool asks() const { return asks_until_.has_value(); }
    Time asks_until() const { return *asks_until_; }
    bool is_complete(Time now) const;
    // Ends the asking. Returns the line, with what PyTorch's flight recorders say where they are
    // read; nothing if what stands still has changed meanwhile.
    std::optional<std::string> take(int world_size, const RankName& name);

    // The line that was returned, as long as it is true; else empty.
    std::string told() const { return told_ == Duration{} ? "" : line_; }

    // Whether it counts as hung. Then outcome(), after take(), is that of the first odd rank, with
    // the stacks of all that were asked.
    bool is_hung(const Limits& limits) const;
    WorkerOutcome outcome(const std::string& sentence, const RankName& name) const;
    Duration lasted() const { return found_->lasted; }

  private:
    // A standstill that may have ended by itself.
    struct Over {
        Time at{};
        Duration lasted{};
        bool told = false;
    };
    std::optional<std::string> settle(Time now);

    std::size_t events_left_out_ = 0;  // before the next look
    std::optional<Standstill> found_;
    std::optional<Over> over_;
    Duration told_{};   // how long it had lasted when it was said; 0: it was not
    std::string line_;  // that was said
    std::optional<Time> asks_until_;
    Standstill asked_about_;
    std::set<NodeId> unanswered_;
    std::map<int, WorkerOutcome> seen_;  // by rank, what the nodes have answered
    std::vector<RecordedCalls> recorded_;
    Duration longest_{};  // of all standstills that have ended by themselves
};

}  // namespace ddprun::rendezvous
