// Tells ddprun in which collective call this worker is (base/call_board.h). Without ddprun, and for
// more than eight groups at a time, it does nothing.
#pragma once

#include "base/call_board.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {

// The entry of one group, as long as it lives. Thread: one at a time.
class CallTeller {
  public:
    CallTeller();
    ~CallTeller();
    CallTeller(const CallTeller&) = delete;
    CallTeller& operator=(const CallTeller&) = delete;

    // A call begins here and ends with the object.
    class Call {
      public:
        Call(CallTeller& teller, const Operation& operation);
        // One that is no operation: kMeetingCall or kSplitCall.
        Call(CallTeller& teller, std::uint64_t kind, std::uint64_t number);
        ~Call();
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

      private:
        void begin(std::uint64_t kind, std::uint64_t number, std::uint64_t elements,
                   std::int64_t peer);
        GroupCall* entry_;
    };

  private:
    GroupCall* entry_ = nullptr;
};

}  // namespace ddprun::trainer
