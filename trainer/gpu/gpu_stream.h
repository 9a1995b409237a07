// Streams of the GPU and the events that order them, without CUDA headers (gpu.h has the
// implementations).
//
// Nothing here waits on the host but GpuEvent::wait(). Errors: unavailable. Any thread, each with
// its own current GPU.
#pragma once

#include <memory>

#include "base/error.h"
#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {

// The legacy default stream by its own name, whatever the program was compiled with.
GpuStream gpu_legacy_stream();
// The default stream of the calling thread.
GpuStream gpu_thread_stream();

// High: kernels of this stream are started before waiting ones of normal streams. Communication has
// it, because the other GPUs wait for it.
enum class GpuPriority { normal, high };

// A stream of our own. It is non-blocking: neither it nor the legacy stream waits for the other, so
// only events order it. Movable.
class OwnGpuStream {
  public:
    static Result<OwnGpuStream> make(GpuPriority priority = GpuPriority::normal);

    OwnGpuStream() = default;  // none
    GpuStream get() const { return stream_.get(); }

  private:
    struct Destroy {
        void operator()(GpuStream stream) const;
    };
    std::unique_ptr<CUstream_st, Destroy> stream_;
};

// A point that a stream has been brought to. Copies are the same point. An event that was recorded
// while its stream was captured belongs to the graph: only before() may be called then.
//
// CUDA's events behind them are used again and never given back: of each GPU as many stay as were
// in use at one time, some for each bucket and call in flight.
class GpuEvent {
  public:
    // The point that the work given to `stream` so far will have reached.
    static Result<GpuEvent> record(GpuStream stream);

    GpuEvent() = default;  // none: must be assigned before use
    explicit operator bool() const { return event_ != nullptr; }

    // What is given to `stream` from now on waits for this point, on the GPU.
    Result<void> before(GpuStream stream) const;

    // Whether the point is reached. seen() says the same to who only watches, and does not mean to
    // touch what lies before the point.
    Result<bool> reached() const;
    Result<bool> seen() const;

    // Waits on the host until the point is reached.
    Result<void> wait() const;

  private:
    std::shared_ptr<CUevent_st> event_;
};

// Whether work on the stream goes into a graph now, and is not carried out.
bool gpu_is_captured(GpuStream stream);

// This thread only looks at streams and events, so what it does must not end a capture of another
// thread. Call it once in such a thread.
void gpu_watches_only();

}  // namespace ddprun::trainer
