// The keeper gets no processor at the worst moment: between its look at the requests and its look
// at the clock. ptrace(2) holds it there.
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/keeper/keeper_bench.h"

using namespace ddprun;
using namespace ddprun::agent;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Lets the keeper run until it has found no request (any more), and holds it there.
bool hold_behind_its_requests(pid_t keeper) {
    for (int status = 0;;) {
        if (::ptrace(PTRACE_SYSCALL, keeper, 0, 0) != 0 ||
            ::waitpid(keeper, &status, __WALL) != keeper || !WIFSTOPPED(status))
            return false;
        __ptrace_syscall_info entry{}, exit{};
        ::ptrace(PTRACE_GET_SYSCALL_INFO, keeper, sizeof entry, &entry);
        if (entry.op != PTRACE_SYSCALL_INFO_ENTRY || entry.entry.nr != SYS_recvmsg) continue;
        if (::ptrace(PTRACE_SYSCALL, keeper, 0, 0) != 0 ||
            ::waitpid(keeper, &status, __WALL) != keeper)
            return false;
        ::ptrace(PTRACE_GET_SYSCALL_INFO, keeper, sizeof exit, &exit);
        if (exit.op == PTRACE_SYSCALL_INFO_EXIT && exit.exit.rval == -EAGAIN) return true;
    }
}

}  // namespace

// ddprun moves its deadline in time. The keeper has looked for requests just before, and looks at
// the clock after the old deadline: it must not kill by what it does not know yet.
TEST(KeeperClock, ADeadlineThatWasMovedInTimeDoesNotFire) {
    Bench bench;
    const auto keeper = static_cast<pid_t>(bench.keeper.pid());
    if (::ptrace(PTRACE_SEIZE, keeper, 0, PTRACE_O_TRACESYSGOOD) != 0)
        GTEST_SKIP() << "ptrace is not allowed here";
    ::ptrace(PTRACE_INTERRUPT, keeper, 0, 0);
    ASSERT_EQ(::waitpid(keeper, nullptr, __WALL), keeper);
    // It has a deadline, and has found nothing else.
    const Time deadline = boot_now() + seconds{1};
    bench.keeper.set_deadline(deadline, seconds{10});
    ASSERT_TRUE(hold_behind_its_requests(keeper));
    if (boot_now() >= deadline) GTEST_SKIP() << "this host is too slow for the story";
    bench.keeper.set_deadline(kNever, seconds{10});
    bench.run_until([deadline] { return boot_now() > deadline + milliseconds{10}; });
    ::ptrace(PTRACE_DETACH, keeper, 0, 0);
    // The answer to a spawn comes after all that it does by itself.
    bench.spawn(shell("exit 5"));
    ASSERT_TRUE(bench.exited(1));
    EXPECT_EQ(bench.expired, 0);
}
