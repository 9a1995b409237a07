// What shows of a real process from outside: one that works, one that waits for something, and one
// that is stopped.
#include "keeper/killing/process_pulse.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/system/boot_clock.h"

using namespace ddprun;
using namespace ddprun::agent::keeper;
using std::chrono::milliseconds;

namespace {

// A process that does this until it is killed.
class Process {
  public:
    explicit Process(const std::function<void()>& what) : pid_(::fork()) {
        if (pid_ != 0) return;
        for (;;) what();
    }
    ~Process() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const { return pid_; }
    // Returns once it has stopped.
    void stop() const {
        ::kill(pid_, SIGSTOP);
        ::waitpid(pid_, nullptr, WUNTRACED);
    }

  private:
    pid_t pid_;
};

// Looks until the process has this state, or for half a minute.
bool comes(pid_t pid, bool runnable) {
    for (const Time end = boot_now() + std::chrono::seconds{30}; boot_now() < end; ::usleep(1000))
        if (pulse_of(pid).runnable == runnable) return true;
    return false;
}

}  // namespace

TEST(ProcessPulse, OneThatSpinsIsSlow) {
    const Process spins([] {});
    ASSERT_TRUE(comes(spins.pid(), true));
    const Pulse before = pulse_of(spins.pid());
    while (pulse_of(spins.pid()).cpu_time == before.cpu_time) ::usleep(1000);
    EXPECT_TRUE(is_slow({before.cpu_time, false}, {pulse_of(spins.pid()).cpu_time, false}));
}

// It has used the processor before, and would go on at once.
TEST(ProcessPulse, OneThatIsStoppedIsFrozen) {
    const Process spins([] {});
    ASSERT_TRUE(comes(spins.pid(), true));
    spins.stop();
    const Pulse before = pulse_of(spins.pid());
    EXPECT_FALSE(before.runnable);
    EXPECT_FALSE(is_slow(before, pulse_of(spins.pid())));
    ::kill(spins.pid(), SIGCONT);
    EXPECT_TRUE(comes(spins.pid(), true));
}

TEST(ProcessPulse, OneThatWaitsForAnEventIsFrozen) {
    const Process waits([] { ::pause(); });
    ASSERT_TRUE(comes(waits.pid(), false));
    const Pulse before = pulse_of(waits.pid());
    EXPECT_GT(before.cpu_time, Duration{});
    EXPECT_FALSE(is_slow(before, pulse_of(waits.pid())));
}

// The thread that would answer waits, perhaps for ever. The other one is none of its loop.
TEST(ProcessPulse, AnotherThreadThatSpinsIsNoAnswer) {
    const Process waits([] {
        std::thread([] {
            for (volatile bool spins = true; spins;) continue;
        }).detach();
        for (;;) ::pause();
    });
    const auto all = [&] {
        clockid_t clock{};
        timespec used{};
        (void)::clock_getcpuclockid(waits.pid(), &clock);
        (void)::clock_gettime(clock, &used);
        return Duration{std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec}};
    };
    const auto until_it_has_spun_for = [&](Duration time) {
        for (const Time end = boot_now() + std::chrono::seconds{30}; boot_now() < end;
             ::usleep(1000))
            if (all() > time) return true;
        return false;
    };
    ASSERT_TRUE(until_it_has_spun_for(milliseconds{50}));
    ASSERT_TRUE(comes(waits.pid(), false));
    const Pulse before = pulse_of(waits.pid());
    ASSERT_TRUE(until_it_has_spun_for(all() + milliseconds{50}));
    EXPECT_FALSE(is_slow(before, pulse_of(waits.pid())));
}

TEST(ProcessPulse, OneThatHasGoneHasNone) {
    pid_t gone = 0;
    {
        const Process process([] {});
        gone = process.pid();
    }
    EXPECT_FALSE(is_slow({}, pulse_of(gone)));
    EXPECT_FALSE(is_slow({}, pulse_of(0))) << "nobody, and not this process";
}
