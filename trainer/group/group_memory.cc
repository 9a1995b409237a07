// Allocates and frees memory on the host or on the GPU.
#include "trainer/group/group_memory.h"

#include <algorithm>
#include <cstdlib>

#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {

Result<GroupMemory> GroupMemory::make(Memory kind, std::size_t bytes) {
    // An empty bucket is legal, but calloc(0) may return null, which means failure below.
    bytes = std::max<std::size_t>(bytes, 1);
    GroupMemory made;
    if (kind == Memory::gpu) {
        const auto memory = gpu_allocate(bytes);
        if (!memory) return memory.error();
        made.memory_ = {*memory, Free{kind}};
        return made;
    }
    made.memory_ = {std::calloc(bytes, 1), Free{kind}};
    if (!made) return Error(ErrorCode::unavailable, "no memory for gradients");
    return made;
}

void GroupMemory::Free::operator()(void* memory) const {
    kind == Memory::gpu ? gpu_free(memory) : std::free(memory);
}

}  // namespace ddprun::trainer
