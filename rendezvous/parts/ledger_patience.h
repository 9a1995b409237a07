// How long the leader has waited for its ledger. A ledger may hang or fail for as long as its file
// system does, so every question has a time: when to ask again, when to let another node try
// (rule 11), and when the job must end without it.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <algorithm>
#include <string>

#include "base/time.h"

namespace ddprun::rendezvous {

class LedgerPatience {
  public:
    // A question goes to the ledger. Of several that are open the first one counts.
    void asks(Time now) {
        if (asked_ == kNever) asked_ = now;
    }
    bool waits() const { return asked_ != kNever; }
    Time asked_since() const { return asked_; }

    // ---- answers. A failure returns whether its sentence is new, and so to be logged.
    void was_read(Time now);
    bool was_not_read(const std::string& why);
    // Any answer to a create, before one of the next two.
    void was_answered() { asked_ = kNever; }
    void was_created() { failing_since_ = unanswered_since_ = kNever; }
    bool was_not_created(Time now, const std::string& why, Duration lease);

    // ---- asking again
    Time create_again_at() const { return create_again_at_; }
    // A leader that cannot propose looks up what is new. True: it must ask now.
    bool reads_again(Time now, Duration lease);
    Time reads_again_at(Duration lease) const;
    // No create has succeeded for so long that the end is not worth recording.
    bool end_is_unrecorded(Time now, Duration lease) const;

    // ---- a ledger that does not answer
    // Since when it does not; kNever: it does.
    Time silent_since() const { return std::min(asked_, failing_since_); }
    // The same, over several activations that each gave up: the job's end counts from here.
    Time unanswered_since() {
        return unanswered_since_ = std::min(unanswered_since_, silent_since());
    }
    std::string why() const { return failing_.empty() ? "no answer" : failing_; }

    // ---- the leader before and after
    // It yields because of this ledger: the next activation may be of the same node.
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
