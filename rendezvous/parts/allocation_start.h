// Since when this leader has an entry that begins its allocation of the job, and when the first
// generation may follow (PROTOCOL.md, rule 26).
//
// Pure; owned by the rendezvous machine.
#pragma once

#include "rendezvous/model/durations.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

class AllocationStart {
  public:
    // The entry of this leader is in the ledger.
    void recorded(Time now) { since_ = now; }
    // Another leader wrote an entry after it.
    void superseded() { since_ = kNever; }
    bool is_recorded() const { return since_ != kNever; }

    // Workers of an earlier allocation have stopped after this time; kNever: no wait has begun.
    Time safe_after(const Times& times) const {
        return since_ == kNever ? kNever : since_ + requeue_wait(times);
    }

  private:
    Time since_ = kNever;
};

}  // namespace ddprun::rendezvous
