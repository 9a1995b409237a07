// Real processes that stand still. They run Python, and have a thread as PyTorch's Gloo has: it
// waits with a timeout while it is in a collective, and without one while it is not.
#include "diagnosis/standstill/still_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/support/loop.h"

namespace ddprun::agent {
namespace {

using rendezvous::Doing;
using rendezvous::Still;
using testing::IsEmpty;

// Arguments: "in", "late" (the same, and the thread gets its name only later) or "out". It says on
// its output that it is there.
constexpr const char* kScript = R"(import ctypes, os, sys, threading, time
def gloo():
    time.sleep(1 if sys.argv[1] == "late" else 0)
    ctypes.CDLL(None).prctl(15, b"pt_gloo_runloop")
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=-1 if sys.argv[1] == "out" else 1000)
def evaluate():
    time.sleep(1000)
threading.Thread(target=gloo, daemon=True).start()
time.sleep(0.2)
os.write(1, b".")
if sys.argv[1] != "out":
    threading.Event().wait()
evaluate()
)";

class Worker {
  public:
    explicit Worker(const char* where) {
        const std::string script = folder_ / "script.py";
        std::ofstream(script) << kScript;
        int ends[2];
        EXPECT_EQ(::pipe(ends), 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::dup2(ends[1], 1);
            ::execlp("python3", "python3", script.c_str(), where, nullptr);
            ::_exit(127);
        }
        ::close(ends[1]);
        char byte;
        EXPECT_EQ(::read(ends[0], &byte, 1), 1);
        ::close(ends[0]);
    }
    ~Worker() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const { return pid_; }

  private:
    Folder folder_;
    pid_t pid_ = -1;
};

TEST(SampleReader, SeesWhetherAWorkerIsInACollective) {
    const Worker inside("in"), outside("out");
    SampleReader in(inside.pid()), out(outside.pid());
    // The main thread is on its way to its wait.
    for (int i = 0; i < 500 && out.read(0).waiting != WaitingIn::timer; ++i) ::usleep(10'000);
    EXPECT_TRUE(in.read(0).is_known);
    EXPECT_EQ(in.read(0).pending, 1);
    EXPECT_EQ(out.read(0).pending, 0);
    EXPECT_EQ(out.read(0).state, 'S');
    EXPECT_EQ(out.read(0).waiting, WaitingIn::timer);
    EXPECT_FALSE(SampleReader(999999999).read(0).is_known);
}

// A thread gets its name when it runs already, and its number may be that of another one that ends.
// Then the number of threads does not tell that the list is old.
TEST(SampleReader, FindsAThreadThatHasItsNameLater) {
    const Worker late("late");
    SampleReader reader(late.pid());
    EXPECT_EQ(reader.read(0).pending, 0);
    ::sleep(2);
    int pending = 0;
    for (int look = 0; look < 20 && pending == 0; ++look) pending = reader.read(0).pending;
    EXPECT_EQ(pending, 1);
}

// It is told after five seconds; their places are read then, and told with the next look.
TEST(StillWatch, TellsWhoWaitsForWhom) {
    const Worker inside("in"), outside("out");
    boost::asio::io_context loop;
    std::vector<Still> told;
    WatchedWorkers workers{Generation{3}, {inside.pid(), outside.pid()}, true};
    StillWatch watch(
        loop, [&] { return workers; },
        [&](Generation generation, std::vector<Still> kinds, const rendezvous::Pace&) {
            EXPECT_EQ(generation, Generation{3});
            told = std::move(kinds);
        },
        [](const std::string& line) { ADD_FAILURE() << line; });
    ASSERT_TRUE(run_until(loop, [&] { return told.size() == 2 && told[1].place != 0; }));
    EXPECT_EQ(told[0].workers, 0b01u);
    EXPECT_EQ(told[0].doing, Doing::in_collective);
    EXPECT_GE(told[0].lasted, kStillFor);
    EXPECT_EQ(told[1].workers, 0b10u);
    EXPECT_EQ(told[1].doing, Doing::sleeps);

    // One has ended: nothing stands still for five seconds then.
    workers.pids[1] = 0;
    ASSERT_TRUE(run_until(loop, [&] { return told.empty(); }));
    ASSERT_TRUE(run_until(loop, [&] { return told.size() == 2; }));
    EXPECT_EQ(told[1].doing, Doing::has_ended);

    // The next generation has not started its workers yet.
    workers = {Generation{4}, {0, 0}, false};
    told.clear();
    watch.close();
    loop.restart();
    loop.run();
    EXPECT_THAT(told, IsEmpty());
}

// A file system that answers nothing: whoever looks there waits until it is gone.
class SilentFolder {
  public:
    SilentFolder() : fuse_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
        const std::string options =
            "fd=" + std::to_string(fuse_) + ",rootmode=40000,user_id=0,group_id=0";
        is_there_ =
            fuse_ >= 0 && ::mount("silent", path().c_str(), "fuse", 0, options.c_str()) == 0;
    }
    ~SilentFolder() { end(); }
    // Who waits there goes on.
    void end() {
        if (fuse_ >= 0) ::close(std::exchange(fuse_, -1));
        if (std::exchange(is_there_, false)) ::umount2(path().c_str(), MNT_DETACH);
    }
    bool is_there() const { return is_there_; }
    std::string path() const { return folder_ / ""; }

  private:
    Folder folder_;
    int fuse_;
    bool is_there_;
};

std::size_t own_threads() {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(threads), end(threads)));
}

// The kernel lets nobody look, in one generation after the other. The loop goes on, it is said
// once, and only a few threads are left behind.
TEST(StillWatch, GoesOnWhereALookDoesNotComeBack) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    SilentFolder silent;
    if (!silent.is_there()) GTEST_SKIP() << "needs FUSE";
    const std::size_t before = own_threads();  // a sanitizer may have some
    boost::asio::io_context loop;
    int asked = 0;
    std::vector<std::string> said;
    StillWatch watch(
        loop,
        [&] {
            return WatchedWorkers{Generation{++asked}, {::getpid()}, true};
        },
        [](Generation, const std::vector<Still>&, const rendezvous::Pace&) {},
        [&](const std::string& line) { said.push_back(line); }, silent.path());
    const auto within = std::chrono::seconds{40};
    ASSERT_TRUE(run_until(
        loop, [&] { return !said.empty(); }, within));
    const int begun = asked;
    ASSERT_TRUE(run_until(
        loop, [&] { return asked > begun + 1; }, within));
    EXPECT_GT(asked, 2 + LookThread::kGivenUp);
    // Those that were given up, and the one that waits.
    EXPECT_LE(own_threads(), before + 1 + LookThread::kGivenUp);
    EXPECT_THAT(said, testing::ElementsAre(testing::HasSubstr("has not let ddprun look")));
    watch.close();
    silent.end();
}

// A process that /proc does not show: it is said once, and nothing is told.
TEST(StillWatch, SaysWhenItCannotSeeAWorker) {
    boost::asio::io_context loop;
    std::vector<std::string> said;
    StillWatch watch(
        loop,
        [] {
            return WatchedWorkers{Generation{3}, {999999999}, true};
        },
        [](Generation, const std::vector<Still>&, const rendezvous::Pace&) {
            ADD_FAILURE() << "it tells something";
        },
        [&](const std::string& line) { said.push_back(line); });
    ASSERT_TRUE(run_until(loop, [&] { return !said.empty(); }));
    EXPECT_THAT(said, testing::ElementsAre(testing::HasSubstr("process 999999999 waits in")));
    watch.close();
}

}  // namespace
}  // namespace ddprun::agent
