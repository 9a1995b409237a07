// gpu_stream.h and gpu_math.h with the CUDA runtime.
#include "trainer/gpu/gpu_stream.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <vector>

#include "trainer/gpu/cuda_checked.h"
#include "trainer/gpu/gpu_kernels.h"
#include "trainer/gpu/gpu_math.h"

namespace ddprun::trainer {

GpuStream gpu_legacy_stream() { return cudaStreamLegacy; }
GpuStream gpu_thread_stream() { return cudaStreamPerThread; }

namespace {

// Making and destroying an event takes as long as all else that is done with it, so events are used
// again. Each GPU has its own. Any thread.
class EventPool {
  public:
    // Never destroyed: events may be given back while the process ends.
    static EventPool& get() {
        static auto* const pool = new EventPool;
        return *pool;
    }
    // Of the current GPU.
    Result<std::shared_ptr<CUevent_st>> take() {
        const int gpu = gpu_current();
        cudaEvent_t event = take_unused(gpu);
        if (!event) {
            // The event only orders streams. Without timing it is cheaper.
            auto made =
                checked(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "a CUDA event");
            if (!made) return made.error();
        }
        return std::shared_ptr<CUevent_st>(event,
                                           [gpu](cudaEvent_t e) { get().give_back(gpu, e); });
    }

  private:
    cudaEvent_t take_unused(int gpu) {
        std::lock_guard lock(mutex_);
        auto& unused = unused_[gpu];
        if (unused.empty()) return nullptr;
        cudaEvent_t event = unused.back();
        unused.pop_back();
        return event;
    }
    void give_back(int gpu, cudaEvent_t event) {
        std::lock_guard lock(mutex_);
        unused_[gpu].push_back(event);
    }

    std::mutex mutex_;
    std::map<int, std::vector<cudaEvent_t>> unused_;  // by GPU
};

}  // namespace

Result<OwnGpuStream> OwnGpuStream::make(GpuPriority priority) {
    // For CUDA the smallest number is the highest priority, and 0 the normal one.
    int least = 0, greatest = 0;
    auto done = checked(cudaDeviceGetStreamPriorityRange(&least, &greatest), "a CUDA stream");
    if (!done) return done.error();
    OwnGpuStream made;
    cudaStream_t stream = nullptr;
    const int number = priority == GpuPriority::high ? greatest : 0;
    done = checked(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, number),
                   "a CUDA stream");
    if (!done) return done.error();
    made.stream_.reset(stream);
    return made;
}

void OwnGpuStream::Destroy::operator()(GpuStream stream) const { (void)cudaStreamDestroy(stream); }

Result<GpuEvent> GpuEvent::record(GpuStream stream) {
    auto event = EventPool::get().take();
    if (!event) return event.error();
    GpuEvent made;
    made.event_ = std::move(*event);
    auto done = checked(cudaEventRecord(made.event_.get(), stream), "a CUDA event");
    if (!done) return done.error();
    return made;
}

Result<void> GpuEvent::before(GpuStream stream) const {
    return checked(cudaStreamWaitEvent(stream, event_.get(), 0), "a CUDA stream");
}

Result<bool> GpuEvent::reached() const {
    const cudaError_t state = cudaEventQuery(event_.get());
    if (state == cudaErrorNotReady) return false;
    if (auto done = checked(state, "the work of a stream"); !done) return done.error();
    return true;
}

Result<bool> GpuEvent::seen() const { return reached(); }

Result<void> GpuEvent::wait() const {
    return checked(cudaEventSynchronize(event_.get()), "the work of a stream");
}

bool gpu_is_captured(GpuStream stream) {
    auto status = cudaStreamCaptureStatusNone;
    // For the legacy stream it fails while another stream is captured. That one is not.
    return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
           status != cudaStreamCaptureStatusNone;
}

void gpu_watches_only() {
    auto mode = cudaStreamCaptureModeRelaxed;
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
}

Result<void> gpu_add_square_sum(double* sum, const void* values, GpuFloat type, std::size_t count,
                                void* scratch, GpuStream stream) {
    return checked(launch_square_sum(sum, values, type, count, scratch, stream),
                   "the norm of the gradients");
}

Result<void> gpu_clip(void* values, GpuFloat type, std::size_t count, const double* square_sum,
                      double most, GpuStream stream) {
    return checked(launch_clip(values, type, count, square_sum, most, stream),
                   "clipping gradients");
}

Result<void> gpu_divide(void* values, GpuFloat type, std::size_t count, double by,
                        GpuStream stream) {
    return checked(launch_divide(values, type, count, by, stream), "dividing gradients");
}

Result<void> gpu_narrow(void* to, GpuFloat type, const float* from, std::size_t count, float by,
                        GpuStream stream) {
    return checked(launch_narrow(to, type, from, count, by, stream), "rounding to 16 bits");
}

Result<void> gpu_widen(float* to, const void* from, GpuFloat type, std::size_t count,
                       GpuStream stream) {
    return checked(launch_widen(to, from, type, count, stream), "widening from 16 bits");
}

}  // namespace ddprun::trainer
