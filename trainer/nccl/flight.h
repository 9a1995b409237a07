// Flight: one call on the group's stream, as the holders of its Work see it.
//
// Its states: begun → launched (it has an event) → done. A call that is to fail is doomed first,
// before anything on the GPU is ended by force: from then on its event no longer counts, since an
// abort lets events pass too. Any thread.
#pragma once

#include <condition_variable>
#include <mutex>

#include "trainer/gpu/gpu_stream.h"
#include "trainer/group/work.h"

namespace ddprun::trainer {

class Flight final : public Work::State {
  public:
    explicit Flight(int gpu) : gpu_(gpu) {}

    // The call is on the stream; the event comes after it. `captured`: it is in a graph, and has no
    // end of its own.
    void launched(const GpuEvent& after, bool captured);
    // The end. The first one counts.
    void end(const Result<void>& result);
    // From now on only end() ends it. False if it is done already.
    bool doom();
    // Looks at the event, for who watches: whether the call is over. Errors: those of the GPU.
    Result<bool> look();
    // After doom(), and before anything is ended by force: whether it was over all the same. It is
    // done then.
    bool was_over();

    Result<void> wait() override;
    Result<void> wait(GpuStream stream) override;
    bool done() override;
    Work::Time ended() override;

  private:
    bool passed(std::unique_lock<std::mutex>& lock);
    void end_now(const Result<void>& result);

    const int gpu_;
    std::mutex mutex_;
    std::condition_variable changed_;
    GpuEvent after_;
    bool captured_ = false, doomed_ = false, done_ = false;
    Result<void> result_;
    Work::Time ended_{};
};

}  // namespace ddprun::trainer
