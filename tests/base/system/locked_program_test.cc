// What lock_program() locks: on fault, within the limit, and in no child. Each case is a process of
// its own, since its locks and limits stay until it ends.
#include "base/system/locked_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"

using namespace ddprun;

namespace {

// A line of /proc/self/status, in bytes.
std::size_t status(const std::string& name) {
    std::ifstream lines("/proc/self/status");
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(name + ":")) return std::stoul(line.substr(name.size() + 1)) * 1024;
    return 0;
}

// Without the capability that root has, the limit counts. A machine's own limit can't be raised
// everywhere (8 MiB is usual): so this program has little beside what it tries, from no room but
// `system`.
bool limit_to(std::size_t bytes) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (::syscall(SYS_capget, &header, data) != 0) return false;
    data[0].effective &= ~(1U << CAP_IPC_LOCK);
    const rlimit limit{bytes, bytes};
    if (::syscall(SYS_capset, &header, data) == 0 && ::setrlimit(RLIMIT_MEMLOCK, &limit) == 0)
        return true;
    std::fprintf(stderr, "RLIMIT_MEMLOCK can't be set to %zu KiB here: %m\n", bytes / 1024);
    return false;
}

// The exit code of a child that does this: 0 if it returns true.
int child(const std::function<bool()>& what) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(what() ? 0 : 1);
    int status = -1;
    ::waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

constexpr std::size_t kKiB = 1024;

// A part of this program that nobody uses: it is locked, and takes no memory.
volatile char unused[2048 * kKiB];
// The same in the program's file, kept by the linker.
[[gnu::used, gnu::retain]] constexpr char unused_constant[2048 * kKiB] = {1};
// And 1 MiB of code.
asm(".pushsection .text.unused, \"axR\", @progbits; .skip 1024 * 1024; .popsection");
// And a part that is seldom used, with the marks that the linker script of ddprun makes.
asm(".pushsection .text.seldom, \"axR\", @progbits; .balign 4096\n"
    ".globl ddprun_seldom_code_begin; ddprun_seldom_code_begin: .skip 8192 * 1024\n"
    ".globl ddprun_seldom_code_end; ddprun_seldom_code_end: .popsection");
extern "C" const char ddprun_seldom_code_begin[], ddprun_seldom_code_end[];
constexpr std::size_t kSeldom = 8192 * kKiB;

// How much of the part that is seldom used is in this process's memory. Source: pagemap, bit 63.
std::size_t seldom_present() {
    const std::uintptr_t page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    std::vector<std::uint64_t> entries(kSeldom / page);
    const UniqueFd map(::open("/proc/self/pagemap", O_RDONLY));
    const auto at = reinterpret_cast<std::uintptr_t>(ddprun_seldom_code_begin) / page;
    if (::pread(map.get(), entries.data(), entries.size() * 8, static_cast<off_t>(at * 8)) < 0)
        return 0;
    return page * static_cast<std::size_t>(std::ranges::count_if(
                      entries, [](std::uint64_t entry) { return entry >> 63U != 0; }));
}

bool limit_is_low() {
    rlimit limit{};
    return ::geteuid() != 0 && ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
           limit.rlim_cur < 32768 * kKiB;
}

}  // namespace

TEST(LockedProgram, LocksWhatIsUsedAndReadsNothing) {
    if (limit_is_low()) GTEST_SKIP() << "RLIMIT_MEMLOCK is too low here";
    const auto locks = [] {
        const std::size_t before = status("VmRSS"), locked = lock_program();
        return unused[0] == 0 && locked > sizeof unused && status("VmLck") == locked &&
               status("VmRSS") < before + sizeof unused / 2 && lock_program() == locked;
    };
    EXPECT_EQ(child(locks), 0);
}

TEST(LockedProgram, ALowLimitLocksWhatIsThereAndNoMore) {
    const auto locks = [] {
        if (!limit_to(128 * kKiB)) return false;
        const std::size_t locked = lock_program();
        return locked > 64 * kKiB && locked <= 128 * kKiB && status("VmLck") == locked;
    };
    EXPECT_EQ(child(locks), 0);
    EXPECT_EQ(child([] { return limit_to(0) && lock_program() == 0 && status("VmLck") == 0; }), 0);
}

TEST(LockedProgram, NoChildHasTheLocks) {
    const auto locks = [] {
        return lock_program() == status("VmLck") && child([] { return status("VmLck") == 0; }) == 0;
    };
    EXPECT_EQ(child(locks), 0);
}

TEST(LockedProgram, FetchesWhatNobodyHasUsed) {
    if (limit_is_low()) GTEST_SKIP() << "RLIMIT_MEMLOCK is too low here";
    const auto fetches = [] {
        const std::size_t before = status("RssFile");
        fetch_program();
        return status("RssFile") > before + sizeof unused_constant / 2;
    };
    EXPECT_EQ(child(fetches), 0);
    EXPECT_EQ(child([&] { return limit_to(128 * kKiB) && !fetches(); }), 0);
    // The code may be locked, but not `unused_constant`. So nothing of either is read.
    const auto fetches_nothing = [] {
        if (!limit_to(sizeof unused_constant - 4 * kKiB)) return false;
        const std::size_t before = status("RssFile");
        fetch_program();
        return status("RssFile") < before + 1024 * kKiB;
    };
    EXPECT_EQ(child(fetches_nothing), 0);
}

// It is read when it is asked for, and leaves when it is let go. With a page that is used the
// kernel maps the large folio of the page cache that has it, up to 2 MiB. So what is used in front
// of this part and behind it has some of it mapped.
TEST(LockedProgram, WhatIsSeldomUsedTakesNoMemoryUntilItIsFetched) {
    if (limit_is_low()) GTEST_SKIP() << "RLIMIT_MEMLOCK is too low here";
    const auto comes_and_goes = [] {
        lock_program();
        let_go_of_seldom_used();  // the start may have mapped all in one piece
        fetch_program();
        const bool left_out = seldom_present() < kSeldom * 3 / 4;
        fetch_seldom_used();
        const bool fetched = seldom_present() == kSeldom;
        const std::size_t locked = status("VmLck");
        let_go_of_seldom_used();
        return left_out && fetched && seldom_present() < kSeldom * 3 / 4 &&
               status("VmLck") == locked;
    };
    EXPECT_EQ(child(comes_and_goes), 0);
}

// The limit has room for the rest, which is locked and read; this part is neither read nor let go.
TEST(LockedProgram, WhatIsSeldomUsedHasTheLastClaimToTheLimit) {
    if (limit_is_low()) GTEST_SKIP() << "RLIMIT_MEMLOCK is too low here";
    const auto leaves_it = [] {
        const std::size_t whole = lock_program();
        ::syscall(SYS_munlockall);  // with sanitizers munlockall() does nothing
        fetch_seldom_used();
        if (!limit_to(whole - kSeldom + 512 * kKiB)) return false;
        const std::size_t before = status("RssFile");
        lock_program();
        fetch_program();
        let_go_of_seldom_used();
        return status("RssFile") > before + sizeof unused_constant / 2 &&
               status("VmLck") >= whole - kSeldom && seldom_present() == kSeldom;
    };
    EXPECT_EQ(child(leaves_it), 0);
}
