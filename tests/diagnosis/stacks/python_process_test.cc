// The stacks of real Python processes, beside what Python itself says (faulthandler).
#include "diagnosis/stacks/python_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/system/small_file.h"
#include "tests/support/loop.h"

namespace ddprun::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// One thread computes, one waits for a lock, and the main thread sleeps in a generator. The file
// "stacks" gets what faulthandler says. `faulthandler` shows "name", 3.11 and later keep
// "Class.name", so there are no classes here.
constexpr const char* kScript = R"(import faulthandler, threading, time
lock = threading.Lock()
lock.acquire()
def waits():
    with lock:
        pass
def sleeps():
    yield 1
    [time.sleep(
        1000)
     for _ in range(1)]
def main():
    for each in sleeps():
        if each == 1:
            say()
def say():
    threading.Thread(target=waits, daemon=True).start()
    time.sleep(0.5)
    threading.Timer(0.5, dump).start()
def dump():
    with open("stacks.new", "w") as file:
        faulthandler.dump_traceback(file)
    import os
    os.rename("stacks.new", "stacks")
    time.sleep(1000)
main()
)";

// A process of Python in a folder of its own; killed in the end.
class Python {
  public:
    explicit Python(const std::string& interpreter, const std::string& script = kScript) {
        std::ofstream(folder_ / "script.py") << script;
        pid_ = ::fork();
        if (pid_ == 0) {
            if (::chdir((folder_ / "").c_str()) != 0) ::_exit(1);
            ::execlp(interpreter.c_str(), interpreter.c_str(), "script.py", nullptr);
            ::_exit(127);
        }
    }
    ~Python() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const { return pid_; }
    std::string file(const std::string& name) const { return read_small_file(folder_ / name); }
    // Waits up to a minute for a condition.
    static bool wait_until(const std::function<bool()>& holds) {
        for (int i = 0; i < 6000; ++i, ::usleep(10'000))
            if (holds()) return true;
        return false;
    }

  private:
    Folder folder_;
    pid_t pid_ = -1;
};

// All the Pythons of this machine that can be read: "python3.11".
std::vector<std::string> interpreters() {
    std::vector<std::string> found;
    for (int minor = 9; minor <= 14; ++minor)
        for (const char* folder : {"/usr/bin", "/usr/local/bin"}) {
            const std::string path = std::string(folder) + "/python3." + std::to_string(minor);
            if (::access(path.c_str(), X_OK) == 0) found.push_back(path);
        }
    return found;
}

// "waits 5 in script.py", in the order of faulthandler.
std::vector<std::string> said_by_python(const std::string& dump) {
    std::vector<std::string> frames;
    std::istringstream lines(dump);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string file, path, word, number, in, name;
        if (!(words >> file >> path >> word >> number >> in >> name) || file != "File") continue;
        const std::string base = path.substr(path.rfind('/') + 1);
        frames.push_back(name + " " + number + " in " + base.substr(0, base.find('"')));
    }
    return frames;
}

std::vector<std::string> read_by_us(const PythonProcess& python) {
    std::vector<std::string> frames;
    for (const PythonThread& thread : python.threads)
        for (const PythonFrame& frame : thread.frames)
            frames.push_back(frame.function.substr(frame.function.rfind('.') + 1) + " " +
                             std::to_string(frame.line) + " in " +
                             frame.file.substr(frame.file.rfind('/') + 1));
    return frames;
}

// faulthandler was called in dump(), which has gone on since: its frame is compared without a line.
TEST(PythonProcess, SaysWhatPythonSays) {
    const std::vector<std::string> all = interpreters();
    if (all.empty()) GTEST_SKIP() << "no Python";
    for (const std::string& interpreter : all) {
        const Python python(interpreter);
        ASSERT_TRUE(Python::wait_until([&] { return !python.file("stacks").empty(); }));
        const std::vector<std::string> expected = said_by_python(python.file("stacks"));
        ASSERT_THAT(expected, Contains("waits 5 in script.py"));
        PythonProcess read;
        // It is on the way from the dump into its last sleep.
        ASSERT_TRUE(Python::wait_until([&] {
            read = read_python(python.pid());
            return read_by_us(read).size() == expected.size();
        })) << interpreter
            << testing::PrintToString(read_by_us(read)) << testing::PrintToString(expected);
        EXPECT_TRUE(read.is_python);
        EXPECT_EQ(read.problem, "");
        for (const std::string& frame : expected) {
            if (frame.starts_with("dump ")) continue;
            EXPECT_THAT(read_by_us(read), Contains(frame)) << interpreter;
        }
        EXPECT_EQ(read.threads.front().id, python.pid());
    }
}

// A stopped process answers no debugger that waits for it. Its memory can be read.
TEST(PythonProcess, IsReadWhileItIsStopped) {
    const Python python("python3", "def spin():\n    while True:\n        pass\nspin()\n");
    const auto spins = [&] {
        return testing::Matches(Contains("spin 3 in script.py"))(
            read_by_us(read_python(python.pid())));
    };
    ASSERT_TRUE(Python::wait_until(spins));
    ::kill(python.pid(), SIGSTOP);
    ASSERT_TRUE(Python::wait_until([&] {
        return read_small_file("/proc/" + std::to_string(python.pid()) + "/stat").find(") T ") !=
               std::string::npos;
    }));
    const PythonProcess read = read_python(python.pid());
    EXPECT_THAT(read_by_us(read), Contains(testing::StartsWith("spin ")));
    EXPECT_TRUE(read.threads.at(0).holds_gil);
}

// Another user's process says why there is nothing.
TEST(PythonProcess, OfAnotherUserSaysWhy) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    const Python python("python3", "import time\ntime.sleep(1000)\n");
    ASSERT_TRUE(Python::wait_until([&] { return !read_python(python.pid()).threads.empty(); }));
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t stranger = ::fork();
    if (stranger == 0) {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
        const std::string problem = read_python(python.pid()).problem;
        ::_exit(::write(ends[1], problem.data(), problem.size()) < 0);
    }
    ::close(ends[1]);
    EXPECT_THAT(read_bounded(ends[0]), HasSubstr("its memory may not be read: "));
    ::close(ends[0]);
    ::waitpid(stranger, nullptr, 0);
}

TEST(PythonProcess, OfAnotherProgramIsNone) {
    const PythonProcess self = read_python(::getpid());
    EXPECT_FALSE(self.is_python);
    EXPECT_THAT(self.threads, IsEmpty());
    EXPECT_EQ(self.problem, "");
    EXPECT_FALSE(read_python(999999999).is_python);
}

}  // namespace
}  // namespace ddprun::agent
