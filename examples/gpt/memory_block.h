// Numbers in the kind of memory on which a network works: the host's or the GPU's.
//
// Thread: one. Errors: unavailable (no memory, or the GPU failed).
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "trainer/gpu/gpu.h"
#include "trainer/group/group_memory.h"

namespace example::gpt {

template <class T>
class MemoryBlock {
  public:
    // Makes room for at least `count` numbers. If the block has to grow, it is filled with zeros.
    ddprun::Result<void> resize(ddprun::trainer::Memory kind, long count) {
        if (count <= count_) return {};
        auto made =
            ddprun::trainer::GroupMemory::make(kind, static_cast<std::size_t>(count) * sizeof(T));
        if (!made) return made.error();
        memory_ = std::move(*made);
        count_ = count;
        return {};
    }

    // Copies numbers from the host to the block's start.
    ddprun::Result<void> fill(ddprun::trainer::Memory kind, std::span<const T> values) {
        if (auto done = resize(kind, static_cast<long>(values.size())); !done) return done;
        if (kind == ddprun::trainer::Memory::gpu)
            return ddprun::trainer::gpu_copy(data(), values.data(), values.size_bytes());
        std::copy(values.begin(), values.end(), data());
        return {};
    }

    // A copy of some numbers on the host. On a GPU it waits for the kernels before it.
    ddprun::Result<std::vector<T>> on_host(long first, long count) const {
        std::vector<T> values(static_cast<std::size_t>(count));
        if (memory_.kind() == ddprun::trainer::Memory::gpu) {
            auto done =
                ddprun::trainer::gpu_copy(values.data(), data() + first, values.size() * sizeof(T));
            if (!done) return done.error();
        } else {
            std::copy_n(data() + first, count, values.begin());
        }
        return values;
    }

    T* data() const { return static_cast<T*>(memory_.data()); }

  private:
    ddprun::trainer::GroupMemory memory_;
    long count_ = 0;
};

using Floats = MemoryBlock<float>;
using Ints = MemoryBlock<int>;

}  // namespace example::gpt
