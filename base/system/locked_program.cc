// Locks the segments of this program, or what is present of them.
#include "base/system/locked_program.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/system/unique_fd.h"

namespace ddprun {
namespace {

struct Range {
    std::uintptr_t begin, end;  // whole pages
    bool is_constant;           // code, or what nobody writes
};

std::uintptr_t page_size() { return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)); }

bool lock(const Range& range) {
    return ::mlock2(reinterpret_cast<void*>(range.begin), range.end - range.begin, MLOCK_ONFAULT) ==
           0;
}

// The first object that is told is the program itself.
std::vector<Range> segments() {
    std::vector<Range> found;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            const std::uintptr_t page = page_size();
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const ElfW(Phdr)& part = info->dlpi_phdr[i];
                const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
                if (part.p_type != PT_LOAD) continue;
                static_cast<std::vector<Range>*>(out)->push_back(
                    {begin / page * page, (begin + part.p_memsz + page - 1) / page * page,
                     (part.p_flags & PF_W) == 0});
            }
            return 1;
        },
        &found);
    return found;
}

// Bit 63 of a page's entry: it is in memory, and this process has used it (or a page beside it).
std::size_t lock_present(const Range& range) {
    const std::uintptr_t page = page_size();
    const UniqueFd map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    std::vector<std::uint64_t> entries((range.end - range.begin) / page);
    const std::size_t bytes = entries.size() * sizeof entries[0];
    if (::pread(map.get(), entries.data(), bytes,
                static_cast<off_t>(range.begin / page * sizeof entries[0])) !=
        static_cast<ssize_t>(bytes))
        return 0;
    const auto at = [&](std::size_t i) { return range.begin + i * page; };
    std::size_t locked = 0;
    for (std::size_t i = 0; i < entries.size();) {
        std::size_t end = i;
        while (end < entries.size() && entries[end] >> 63U != 0) ++end;
        // Half of it, and half of that, when the limit does not allow all.
        while (end > i && !lock({at(i), at(end), false})) {
            end = i + (end - i) / 2;
            if (end == i) return locked;
        }
        locked += at(end) - at(i);
        i = std::max(end, i + 1);
    }
    return locked;
}

}  // namespace

std::size_t lock_program() {
    std::size_t locked = 0;
    for (const Range& segment : segments())
        locked += lock(segment) ? segment.end - segment.begin : lock_present(segment);
    return locked;
}

void fetch_program() {
    std::vector<Range> constant = segments();
    std::erase_if(constant, [](const Range& segment) { return !segment.is_constant; });
    if (!std::ranges::all_of(constant, lock)) return;
    for (const Range& segment : constant)
        (void)::madvise(reinterpret_cast<void*>(segment.begin), segment.end - segment.begin,
                        MADV_POPULATE_READ);
}

}  // namespace ddprun
