// GPUs for code that is compiled without CUDA headers: how many there are, and their memory.
// Streams and events are in gpu_stream.h, kernels in gpu_math.h.
//
// One interface, three implementations; the program is linked with one of them. *_cuda.cc uses the
// CUDA runtime, gpu_fallback.cc reports no GPU, and tests/trainer/gpu_host plays a GPU in host
// memory. The CUDA runtime is linked statically, so the program also starts on a machine without a
// driver and sees no GPU there. The functions use the calling thread's current GPU.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

// CUDA's own types, so that a cudaStream_t of the program is a GpuStream.
struct CUstream_st;
struct CUevent_st;

namespace ddprun::trainer {

// A stream: work on it is done in order. Null is the legacy default stream, which orders itself
// with all streams but the non-blocking ones. A program that is compiled with
// --default-stream=per-thread gives gpu_thread_stream() in its place.
using GpuStream = CUstream_st*;

// How many GPUs this process can use now. 0 without a driver, and 0 in a build without CUDA. Any
// thread.
int gpu_count();

// A name that no other GPU of the job has: host name, PCI address and UUID. Empty on an error.
std::string gpu_name(int index);

// Explains gpu_count() in a message: "2 GPUs", "no NVIDIA driver, or one too old,", "built without
// CUDA".
std::string gpu_state();

// Makes a GPU the current one of this thread, and gives it back at the end.
class GpuTurn {
  public:
    explicit GpuTurn(int index);
    ~GpuTurn();
    GpuTurn(const GpuTurn&) = delete;
    GpuTurn& operator=(const GpuTurn&) = delete;

    // Whether the GPU could be chosen. Errors: unavailable.
    const Result<void>& chosen() const { return chosen_; }

  private:
    int before_ = -1;
    Result<void> chosen_;
};

// The GPU that is current in this thread; -1 if there is none.
int gpu_current();

// Memory on the current GPU, filled with zeros. Returns when they are there. Errors: unavailable.
Result<void*> gpu_allocate(std::size_t bytes);
void gpu_free(void* memory);

// Host memory that is pinned: copies between it and the GPU run beside the program. Errors:
// unavailable.
Result<void*> gpu_allocate_pinned(std::size_t bytes);
void gpu_free_pinned(void* memory);
// The same for host memory that exists already (gpu_copier.h has an owner for it).
Result<void> gpu_pin(void* memory, std::size_t bytes);
void gpu_unpin(void* memory);

// Copies between host and GPU, or within one of them. Returns when the bytes have arrived. It comes
// after what is on the legacy stream, and so not after what is on non-blocking streams.
Result<void> gpu_copy(void* to, const void* from, std::size_t bytes);
// The same in the order of a stream, without waiting. Host memory must be pinned, or the copy may
// wait.
Result<void> gpu_copy(void* to, const void* from, std::size_t bytes, GpuStream stream);
// Fills GPU memory with zeros, in the order of the stream.
Result<void> gpu_zero(void* memory, std::size_t bytes, GpuStream stream = nullptr);

}  // namespace ddprun::trainer
