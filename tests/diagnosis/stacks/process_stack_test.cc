// Where living processes are, for the report of a hang: by the kernel's files and by debugging
// tools. The processes are real children of the test; the tools are shell scripts that it writes.
#include "diagnosis/stacks/process_stack.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/loop/in_time.h"
#include "keeper/killing/descendants.h"
#include "tests/support/loop.h"

namespace ddprun::agent {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A child that waits in a read of a pipe. The stack of a hanging worker looks like this.
class Child {
  public:
    Child() {
        EXPECT_EQ(::pipe(ends_), 0);
        // The parent keeps the writing end open and writes nothing, so the read lasts until the
        // destructor.
        pid_ = ::fork();
        if (pid_ == 0) {
            ::close(ends_[1]);
            char byte;
            ::_exit(static_cast<int>(::read(ends_[0], &byte, 1)));
        }
    }
    ~Child() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    std::int64_t pid() const { return pid_; }
    // Waits up to about 2 s. The child is not in its read yet when fork() returns.
    bool comes_to(char state) const {
        for (int i = 0; i < 2000; ++i, ::usleep(1000))
            if (process_state(pid_) == state) return true;
        return false;
    }

  private:
    int ends_[2] = {-1, -1};
    pid_t pid_ = -1;
};

// While it lives, PATH has the scripts that the test adds, and the few programs that they need. So
// no debugger of the machine is found, and every machine gives the same result.
class Tools {
  public:
    Tools() : path_(std::getenv("PATH")) {
        for (const char* program : {"sh", "sleep", "kill"})
            std::filesystem::create_symlink(std::string("/bin/") + program, folder_ / program);
        ::setenv("PATH", (folder_ / "").c_str(), 1);
    }
    ~Tools() { ::setenv("PATH", path_.c_str(), 1); }
    void add(const std::string& name, const std::string& script) {
        std::ofstream(folder_ / name) << "#!/bin/sh\n" << script;
        ::chmod((folder_ / name).c_str(), 0755);
    }

  private:
    Folder folder_;
    std::string path_;
};

std::string folder_file(const Folder& folder) { return folder / "eval.py"; }

// Asks and runs the loop until all answers are there.
std::vector<StackLines> stacks(const std::vector<std::int64_t>& pids,
                               Duration limit = std::chrono::seconds{9}) {
    boost::asio::io_context loop;
    std::optional<std::vector<StackLines>> found;
    stacks_of(loop, pids, limit, [&](const std::vector<FoundStack>& all) {
        found.emplace();
        for (const FoundStack& each : all) found->push_back(each.lines);
    });
    EXPECT_TRUE(run_until(loop, [&] { return found.has_value(); }));
    return found.value_or(std::vector<StackLines>{});
}

// The line has the thread, its state, the system call, and the file that it waits for. It needs no
// tool, so the report has it in every container.
TEST(KernelStack, SaysInWhichCallAThreadWaits) {
    const Child child;
    ASSERT_TRUE(child.comes_to('S'));
    ASSERT_THAT(threads_of(child.pid()), ElementsAre(child.pid()));
    EXPECT_THAT(kernel_line(child.pid(), child.pid()),
                AllOf(HasSubstr("thread " + std::to_string(child.pid()) + " ("),
                      HasSubstr(" sleeps in read on pipe:[")));
}

// A worker may end while the report is made. The pid is larger than any that Linux gives (4194304).
TEST(KernelStack, OfOneThatIsGoneIsEmpty) {
    EXPECT_THAT(threads_of(999999999), IsEmpty());
    EXPECT_EQ(process_state(999999999), '?');
}

// Without any tool, the kernel's part is left: one entry for each process that was asked for.
TEST(ProcessStack, NeedsNoTool) {
    const Tools none;
    const Child one, two;
    ASSERT_TRUE(one.comes_to('S') && two.comes_to('S'));
    EXPECT_THAT(stacks({one.pid(), two.pid()}),
                ElementsAre(ElementsAre(HasSubstr("sleeps in read")),
                            ElementsAre(HasSubstr("sleeps in read"))));
    EXPECT_THAT(stacks({}), IsEmpty());
}

// A tool would stop the process, which is to go on.
TEST(ProcessStack, LooksAtOneWithoutTheTools) {
    Tools tools;
    tools.add("eu-stack", "echo '#0  in_the_worker ()'\n");
    const Child child;
    ASSERT_TRUE(child.comes_to('S'));
    boost::asio::io_context loop;
    std::optional<StackLines> found;
    look_without_tools(loop, child.pid(), [&](StackLines lines) { found = std::move(lines); });
    ASSERT_TRUE(run_until(loop, [&] { return found.has_value(); }));
    EXPECT_THAT(*found, ElementsAre(HasSubstr("sleeps in read")));
    EXPECT_EQ(process_state(child.pid()), 'S');
}

// py-spy is asked for Python only, and eu-stack for the rest.
TEST(ProcessStack, AsksTheToolForTheProgram) {
    Tools tools;
    tools.add("py-spy", "echo 'Thread 1 (idle)'\n");
    tools.add("eu-stack", "echo '#0  in_the_worker ()'\n");
    const Child child;
    ASSERT_TRUE(child.comes_to('S'));
    const auto lines = stacks({child.pid()});
    EXPECT_THAT(lines[0], ElementsAre(HasSubstr("sleeps in read"),
                                      "eu-stack of process " + std::to_string(child.pid()) + ":",
                                      "#0  in_the_worker ()"));
}

// Without permission to trace, a tool fails.
TEST(ProcessStack, LeavesOutAToolThatFails) {
    Tools tools;
    tools.add("eu-stack", "echo broken; exit 1\n");
    const Child child;
    ASSERT_TRUE(child.comes_to('S'));
    EXPECT_THAT(stacks({child.pid()}), ElementsAre(ElementsAre(HasSubstr("sleeps in read"))));
}

// Nothing of Python is asked of a tool: the reader has it all. Its own functions come first.
TEST(ProcessStack, ReadsPythonItself) {
    Folder folder;
    std::ofstream(folder_file(folder)) << "import time\ndef evaluate():\n    time.sleep(1000)\n"
                                          "def main():\n    evaluate()\nmain()\n";
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::execlp("python3", "python3", folder_file(folder).c_str(), nullptr);
        ::_exit(127);
    }
    std::vector<StackLines> found;
    const std::string own = "in evaluate (" + folder_file(folder) + ":3), called by main (" +
                            folder_file(folder) + ":5), called by <module> (" +
                            folder_file(folder) + ":6)";
    for (int i = 0; i < 500; ++i, ::usleep(10'000))
        if (found = stacks({pid}); !found[0].empty() && found[0][0] == own) break;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    ASSERT_GE(found[0].size(), 3u);
    EXPECT_EQ(found[0][0], own);
    EXPECT_THAT(found[0][1], HasSubstr("thread " + std::to_string(pid) + " (python3) sleeps in "));
    EXPECT_EQ(found[0][2], "    evaluate (" + folder_file(folder) + ":3)");
    EXPECT_THAT(found[0], Not(Contains(HasSubstr(" of process "))));
}

// The script stops the process, as a debugger does, and never answers. (The loop over its arguments
// finds the last one, the pid.) It is killed after 5 s, the limit for all tools. The worker must
// then run on: a report must not turn a slow worker into a stopped one.
TEST(ProcessStack, DoesNotWaitForAToolThatHangs) {
    Tools tools;
    tools.add("eu-stack", "while [ $# -gt 1 ]; do shift; done; kill -STOP $1; exec sleep 300\n");
    const Child child;
    ASSERT_TRUE(child.comes_to('S'));
    EXPECT_THAT(stacks({child.pid()}), ElementsAre(ElementsAre(HasSubstr("sleeps in read"))));
    EXPECT_TRUE(child.comes_to('S'));
}

// What is left of the limit is for a last look, which lets a process go on that a tool has stopped.
TEST(ProcessStack, AsksNoToolWhereNoTimeIsLeft) {
    Tools tools;
    tools.add("eu-stack", "echo '#0  in_the_worker ()'\n");
    const Child child;
    ASSERT_TRUE(child.comes_to('S'));
    EXPECT_THAT(stacks({child.pid()}, std::chrono::seconds{1}),
                ElementsAre(ElementsAre(HasSubstr("sleeps in read"))));
}

// The kernel is not blamed for a process that nobody has looked at.
TEST(ProcessStack, SaysWhenItDoesNotLook) {
    const Child child;
    works_under_way = kWorksAtOnce;
    const auto lines = stacks({child.pid()});
    works_under_way = 0;
    EXPECT_THAT(lines, ElementsAre(ElementsAre("ddprun has not looked at process " +
                                               std::to_string(child.pid()) +
                                               ", since 8 of its looks at processes have not come "
                                               "back from the kernel")));
}

// The tool prints 500 lines, and the report keeps 60 for each process. The ellipsis says that lines
// are missing.
TEST(ProcessStack, CutsWhatAToolSays) {
    Tools tools;
    tools.add("eu-stack", "i=0; while [ $i -lt 500 ]; do echo frame $i; i=$((i+1)); done\n");
    const Child child;
    ASSERT_TRUE(child.comes_to('S'));
    const auto lines = stacks({child.pid()});
    EXPECT_THAT(lines[0], AllOf(Contains("frame 59"), Not(Contains("frame 60")), Contains("…")));
}

}  // namespace
}  // namespace ddprun::agent
