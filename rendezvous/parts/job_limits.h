// The limits of a job that hold now: those of its command line, and over them what operators have
// set since (PROTOCOL.md, rule 27).
//
// What is set holds at once for this leader. The next ledger entry records it, and the next leader
// reads it there. What another leader has recorded replaces what was recorded before. What this
// leader was asked and has not recorded yet stays, because it has promised it; until it is recorded
// all nodes keep it, too (Facts), and tell the next leader.
//
// Pure; owned by the job's record.
#pragma once

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class JobLimits {
  public:
    explicit JobLimits(const Limits& of_command_line)
        : of_command_line_(of_command_line), now_(of_command_line) {}

    const Limits& now() const { return now_; }
    // What all nodes are to keep. `day`: the time since 1970.
    LimitsAsked set(const OperatorLimits& asked, Duration day);
    // A node says what was asked of another leader. True: it changes what holds.
    bool hear(const LimitsAsked& asked);
    // For the next entry.
    OperatorLimits to_record() const;
    // An entry of another leader stands.
    void adopt(const OperatorLimits& recorded);
    // An entry of this leader stands. Nothing is asked between its proposal and this.
    void stand(const OperatorLimits& recorded);

  private:
    void renew();

    Limits of_command_line_;
    OperatorLimits recorded_, unrecorded_;
    // Of the newest request that was set or heard. A hybrid logical clock (Kulkarni and others,
    // 2014): a leader that has heard of a request numbers its next one above it, and two leaders
    // that have not heard of each other are told apart by their clocks.
    std::int64_t number_ = 0;
    Limits now_;
};

}  // namespace ddprun::rendezvous
