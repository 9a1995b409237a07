// GradientNorm: sums of the squares of gradients, for clipping and for the search for values that
// are not finite, on the host or on the GPU. Allocates only in prepare().
//
// On the host also the squares of float64 gradients that are too large for a double: such a sum has
// another unit. On a GPU their norm is infinite.
//
// It has a few numbered sums, which begin at zero. On a GPU adding to them and clipping by them
// take their turn on a stream and do not wait; read() does. Sums that are added to on different
// streams need scratch memory of their own, hence the two lanes. Thread: one at a time. Errors:
// unavailable.
#pragma once

#include <cstddef>
#include <vector>

#include "trainer/gpu/gpu.h"
#include "trainer/group/group_memory.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {

class GradientNorm {
  public:
    // Memory for this many sums.
    Result<void> prepare(Memory kind, std::size_t sums);

    // Sets sums from `first` on to zero.
    Result<void> reset(std::size_t first, std::size_t count, GpuStream stream);

    // Adds the squares of a buffer of a floating type, in double. The sum is not finite if a value
    // is not. `lane` 0 or 1: each for one stream at a time.
    Result<void> add(std::size_t sum, const Buffer& buffer, int lane, GpuStream stream);

    // Scales the buffer so that the norm, the root of the sum, becomes `most`. A smaller norm, an
    // infinity and a NaN leave it as it is.
    Result<void> clip(std::size_t sum, const Buffer& buffer, double most, GpuStream stream);

    // Of the sums from `first` on, after the work on the stream: numbers that are finite if all
    // values are. Waits on the host.
    Result<std::vector<double>> read(std::size_t first, std::size_t count, GpuStream stream);
    // A sum, and its root. Waits on the host.
    Result<double> square(std::size_t sum, GpuStream stream);
    Result<double> norm(std::size_t sum, GpuStream stream);

    // Replaces a sum, on the host: by that of all ranks.
    void set(std::size_t sum, double value) { host_[sum] = value, unit_[sum] = 1; }

  private:
    double* on_gpu(std::size_t sum) const { return static_cast<double*>(gpu_.data()) + sum; }

    Memory kind_ = Memory::host;
    std::vector<double> host_, unit_;  // squares of values that are divided by the unit
    GroupMemory gpu_;                  // the sums
    GroupMemory scratch_;
};

}  // namespace ddprun::trainer
