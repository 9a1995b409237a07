// Allocates and frees memory on the host or on the GPU.
#include "trainer/group/group_memory.h"

#include <algorithm>
#include <cstdlib>

#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {
namespace {

// As on a GPU: vector instructions and whole cache lines, whatever lies in the memory.
constexpr std::size_t kAlignment = 256;

}  // namespace

Result<GroupMemory> GroupMemory::make(Memory kind, std::size_t bytes) {
    // An empty bucket is legal. The size must be a multiple of the alignment.
    bytes = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    if (kind == Memory::gpu) {
        const auto memory = gpu_allocate(bytes);
        if (!memory) return memory.error();
        return own(kind, *memory, gpu_free);
    }
    void* memory = std::aligned_alloc(kAlignment, bytes);
    if (!memory) return Error(ErrorCode::unavailable, "no memory for gradients");
    std::fill_n(static_cast<char*>(memory), bytes, char{0});
    return own(kind, memory, std::free);
}

GroupMemory GroupMemory::own(Memory kind, void* memory, Free free) {
    GroupMemory made;
    made.kind_ = kind;
    made.memory_ = {memory, std::move(free)};
    return made;
}

}  // namespace ddprun::trainer
