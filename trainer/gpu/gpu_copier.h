// GpuCopier: copies memory of the GPU to the host beside the program's own work, e.g. for a
// snapshot.
//
// The copies are on a stream of their own, behind what the program's stream has been given, and go
// at the speed of the link into host memory that is pinned. Kernels that only read the memory may
// run meanwhile; those that change it must come behind the end:
//
//   copier.begin(stream);
//   for (…) copier.copy(to, from, bytes);
//   auto copied = copier.end();
//   copied->before(stream);                     // in front of the optimizer of the next step
//   … another thread: copied->wait();           // the bytes are there
//
// Thread: one at a time. Errors: unavailable.
#pragma once

#include <cstddef>

#include "base/error.h"
#include "trainer/gpu/gpu_stream.h"

namespace ddprun::trainer {

// Makes host memory that exists already pinned, as long as it lives: whole pages. Where it cannot
// be pinned, copies work too, but slower, and may wait. Movable.
class PinnedPages {
  public:
    static Result<PinnedPages> pin(void* memory, std::size_t bytes);

    PinnedPages() = default;  // nothing
    explicit operator bool() const { return memory_ != nullptr; }

  private:
    struct Unpin {
        void operator()(void* memory) const;
    };
    std::unique_ptr<void, Unpin> memory_;
};

class GpuCopier {
  public:
    // On the current GPU.
    static Result<GpuCopier> make();

    // The next copies come behind what `stream` has been given so far.
    Result<void> begin(GpuStream stream);
    Result<void> copy(void* to, const void* from, std::size_t bytes);
    // The point at which all copies are done.
    Result<GpuEvent> end();

  private:
    OwnGpuStream stream_;
};

}  // namespace ddprun::trainer
