// Allocates and frees memory on the host or on the GPU.
#include "trainer/group/group_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {
namespace {

// As on a GPU: vector instructions and whole cache lines, whatever lies in the memory.
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Huge pages where the kernel has them. A rank that reads the memory of another one
// (gloo/peer_memory.h) has the kernel look up each page: with pages of 4 KiB an all-reduce of 64 MB
// takes more than twice the processor time. `bytes`: whole pages. Null: there is no memory.
char* map_huge(std::size_t bytes) {
    const std::size_t room = bytes + kHugePage;
    void* made = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    const auto past = reinterpret_cast<std::uintptr_t>(made) % kHugePage;
    const std::size_t before = past ? kHugePage - past : 0;
    char* const memory = static_cast<char*>(made) + before;
    if (before) (void)::munmap(made, before);
    (void)::munmap(memory + bytes, kHugePage - before);
    // Whole ones alone, so that it takes no more memory than without them.
    (void)::madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    return memory;
}

}  // namespace

Result<GroupMemory> GroupMemory::make(Memory kind, std::size_t bytes) {
    // An empty bucket is legal. The size must be a multiple of the alignment.
    bytes = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    if (kind == Memory::gpu) {
        const auto memory = gpu_allocate(bytes);
        if (!memory) return memory.error();
        return own(kind, *memory, gpu_free);
    }
    if (bytes >= kHugePage) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        bytes = (bytes + page - 1) / page * page;
        char* const memory = map_huge(bytes);
        if (!memory) return Error(ErrorCode::unavailable, "no memory for gradients");
        std::fill_n(memory, bytes, char{0});  // now, and not in the first step
        return own(kind, memory, [bytes](void* at) { (void)::munmap(at, bytes); });
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
