// Locks the segments of this program, or what is present of them.
#include "base/system/locked_program.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/system/exception_index.h"
#include "base/system/unique_fd.h"

// Set by the linker script of ddprun (cmake/seldom_used.cmake); other programs do not have them.
extern "C" {
[[gnu::weak]] extern const char ddprun_seldom_code_begin[];
[[gnu::weak]] extern const char ddprun_seldom_code_end[];
[[gnu::weak]] extern const char ddprun_seldom_constants_begin[];
[[gnu::weak]] extern const char ddprun_seldom_constants_end[];
[[gnu::weak]] extern const char ddprun_seldom_frames_begin[];
[[gnu::weak]] extern const char ddprun_seldom_frames_end[];
}

namespace ddprun {
namespace {

enum class Use { always, seldom, written };  // `written`: variables

struct Range {
    std::uintptr_t begin, end;  // whole pages
    Use use;
};

std::uintptr_t page_size() { return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)); }
std::uintptr_t page_of(std::uintptr_t at) { return at / page_size() * page_size(); }
std::uintptr_t next_page(std::uintptr_t at) { return page_of(at + page_size() - 1); }

bool lock(const Range& range) {
    return ::mlock2(reinterpret_cast<void*>(range.begin), range.end - range.begin, MLOCK_ONFAULT) ==
           0;
}

// What is between two marks, in whole pages. A page that is shared with other things is not in it.
Range seldom(const char* begin, const char* end) {
    return {next_page(reinterpret_cast<std::uintptr_t>(begin)),
            page_of(reinterpret_cast<std::uintptr_t>(end)), Use::seldom};
}

// Adds a segment of constants in parts.
void add_parts(Range rest, std::vector<Range>& to) {
    for (const Range& part : {seldom(ddprun_seldom_code_begin, ddprun_seldom_code_end),
                              seldom(ddprun_seldom_constants_begin, ddprun_seldom_constants_end),
                              seldom(ddprun_seldom_frames_begin, ddprun_seldom_frames_end)}) {
        if (part.begin >= part.end || part.begin < rest.begin || part.end > rest.end) continue;
        to.push_back({rest.begin, part.begin, rest.use});
        to.push_back(part);
        rest.begin = part.end;
    }
    to.push_back(rest);
}

// The first object that is told is the program itself.
std::vector<Range> ranges() {
    std::vector<Range> found;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const ElfW(Phdr)& part = info->dlpi_phdr[i];
                const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
                if (part.p_type != PT_LOAD) continue;
                add_parts({page_of(begin), next_page(begin + part.p_memsz),
                           (part.p_flags & PF_W) == 0 ? Use::always : Use::written},
                          *static_cast<std::vector<Range>*>(out));
            }
            return 1;
        },
        &found);
    std::erase_if(found, [](const Range& range) { return range.begin == range.end; });
    // What is used always has the first claim to the limit.
    std::stable_partition(found.begin(), found.end(),
                          [](const Range& range) { return range.use != Use::seldom; });
    return found;
}

// The index for exceptions (program header PT_GNU_EH_FRAME); null: the program has none.
const char* exception_index() {
    const char* found = nullptr;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            for (int i = 0; i < info->dlpi_phnum; ++i)
                if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
                    *static_cast<const char**>(out) =
                        reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
            return 1;
        },
        &found);
    return found;
}

// With what the index has of that code. It is found by reading the index, so only here.
std::vector<Range> seldom_ranges() {
    std::vector<Range> found = ranges();
    std::erase_if(found, [](const Range& range) { return range.use != Use::seldom; });
    const char* const index = found.empty() ? nullptr : exception_index();
    if (!index) return found;
    for (const PageSpan& span :
         index_only_for(index, reinterpret_cast<std::uintptr_t>(ddprun_seldom_code_begin),
                        reinterpret_cast<std::uintptr_t>(ddprun_seldom_code_end), page_size()))
        found.push_back({span.begin, span.end, Use::seldom});
    return found;
}

void populate(const Range& range) {
    (void)::madvise(reinterpret_cast<void*>(range.begin), range.end - range.begin,
                    MADV_POPULATE_READ);
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
        while (end > i && !lock({at(i), at(end), range.use})) {
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
    for (const Range& range : ranges())
        locked += lock(range) ? range.end - range.begin : lock_present(range);
    return locked;
}

void fetch_program() {
    std::vector<Range> constant = ranges();
    std::erase_if(constant, [](const Range& range) { return range.use != Use::always; });
    if (std::ranges::all_of(constant, lock)) std::ranges::for_each(constant, populate);
}

void fetch_seldom_used() { std::ranges::for_each(seldom_ranges(), populate); }

// Pages leave a locked range only when it is unlocked. One that could not be locked again at once
// keeps its pages.
void let_go_of_seldom_used() {
    for (const Range& range : seldom_ranges()) {
        if (!lock(range)) continue;
        void* const at = reinterpret_cast<void*>(range.begin);
        // With sanitizers munlock() does nothing.
        (void)::syscall(SYS_munlock, at, range.end - range.begin);
        (void)::madvise(at, range.end - range.begin, MADV_DONTNEED);
        (void)lock(range);
    }
}

}  // namespace ddprun
