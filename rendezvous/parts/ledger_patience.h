// How long the leader has waited for its ledger. A ledger may hang or fail as long as its file
// system does. So every question has a limit: when to ask again, when to let another node try
// (PROTOCOL.md, rule 11), and when the job must end without the ledger.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <algorithm>
#include <string>

#include "base/time.h"

namespace ddprun::rendezvous {

class LedgerPatience {
  public:
    // A question goes to the ledger. If several are open, the oldest counts.
    void asks(Time now) {
        if (asked_ == kNever) asked_ = now;
    }
    bool waits() const { return asked_ != kNever; }
    Time asked_since() const { return asked_; }

    // ---- answers. A failure returns whether its sentence is new, and so to be logged.
    void was_read(Time now);
    bool was_not_read(const std::string& why);
    // Call it for any answer to a create, before was_created() or was_not_created().
    void was_answered() { asked_ = kNever; }
    void was_created() { failing_since_ = unanswered_since_ = kNever; }
    bool was_not_created(Time now, const std::string& why, Duration lease);

    // A create has failed, so its entry may stand. It is known when another create is answered.
    bool is_in_doubt() const { return failing_since_ != kNever; }

    // ---- asking again
    Time create_again_at() const { return create_again_at_; }
    // A leader that cannot propose reads the ledger again at intervals. Returns true if it must ask
    // now.
    bool reads_again(Time now, Duration lease);
    Time reads_again_at(Duration lease) const;
    // Creates have failed for so long that the job ends without recording its end.
    bool end_is_unrecorded(Time now, Duration lease) const;

    // ---- a ledger that does not answer
    // Since when it does not answer; kNever: it answers.
    Time silent_since() const { return std::min(asked_, failing_since_); }
    // The same over several activations that each gave up. The end of the job counts from here.
    Time unanswered_since() {
        return unanswered_since_ = std::min(unanswered_since_, silent_since());
    }
    std::string why() const { return failing_.empty() ? "no answer" : failing_; }

    // ---- the leader before and after
    // The leader yields because of this ledger. The next activation may be on the same node.
    void yields(Time now) { yielded_at_ = now; }
    LedgerPatience after_yield() const;
    LedgerPatience in_next_activation(Time now, Duration lease) const;

  private:
    Time asked_ = kNever;  // since when an answer is awaited
    Time read_at_ = kLongAgo;
    Time create_again_at_ = kLongAgo;
    Time failing_since_ = kNever;  // no create has been answered but by "failed"
    std::string failing_;          // the sentence that was logged last
    Time unanswered_since_ = kNever;
    Time yielded_at_ = kLongAgo;
};

}  // namespace ddprun::rendezvous
