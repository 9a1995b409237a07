// What Python's faulthandler writes, as it was recorded, and lines that only look like it.
#include "diagnosis/stacks/fault_dump.h"

#include <gmock/gmock.h>

namespace ddprun::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Python 3.11 with a second thread. The main thread is what the ranks wait for, so it comes first.
TEST(FaultDump, ShowsTheMainThreadFirst) {
    const FaultDump dump =
        fault_dump({"epoch 3", "Fatal Python error: Aborted", "",
                    "Thread 0x00007f93 (most recent call first):",
                    "  File \"/usr/lib/python3.11/threading.py\", line 324 in wait",
                    "  File \"/d/log.py\", line 7 in writes", "",
                    "Current thread 0x00007f94 (most recent call first):",
                    "  File \"/usr/lib/python3.11/socket.py\", line 9 in recv",
                    "  File \"/d/a \", line in.py\", line 88 in evaluate",
                    "  File \"/d/train.py\", line 20 in <module>", "",
                    "Extension modules: numpy, torch._C (total: 2)"});
    EXPECT_THAT(dump.before, ElementsAre("epoch 3"));
    EXPECT_THAT(
        dump_lines(dump),
        ElementsAre("in evaluate (/d/a \", line in.py:88), called by <module> (/d/train.py:20)",
                    "a thread of Python", "    recv (/usr/lib/python3.11/socket.py:9)",
                    "    evaluate (/d/a \", line in.py:88)", "    <module> (/d/train.py:20)",
                    "a thread of Python", "    wait (/usr/lib/python3.11/threading.py:324)",
                    "    writes (/d/log.py:7)"));
}

// Python 3.14 names threads and adds the C stack of the one that has got the signal.
TEST(FaultDump, KnowsTheFormOfLaterVersions) {
    const FaultDump dump =
        fault_dump({"Fatal Python error: Aborted",
                    "Current thread 0x00007f94 [python] (most recent call first):",
                    "  File \"/d/train.py\", line 20 in <module>",
                    "Current thread's C stack trace (most recent call first):",
                    "  Binary file \"/usr/bin/python\", at _Py_DumpStack+0x2a"});
    ASSERT_EQ(dump.threads.size(), 1u);
    EXPECT_THAT(dump.threads[0].frames, ElementsAre(PythonFrame{"/d/train.py", "<module>", 20}));
}

// Its upper end is lost where it is longer than what is kept.
TEST(FaultDump, MayBeCut) {
    const FaultDump dump = fault_dump({"  File \"/d/lost.py\", line 1 in lost",
                                       "Current thread 0x1 (most recent call first):",
                                       "  File \"/d/train.py\", line 20 in main"});
    EXPECT_THAT(dump_lines(dump), ElementsAre("in main (/d/train.py:20)", "a thread of Python",
                                              "    main (/d/train.py:20)"));
}

// A worker whose own handler of the signal writes something else, or nothing.
TEST(FaultDump, IsEmptyWhereThereIsNone) {
    const std::vector<std::string> lines{"  File \"x\"", "Thread 0x",
                                         "(most recent call first):", "  File \"x\", line 3 in f"};
    const FaultDump dump = fault_dump(lines);
    EXPECT_EQ(dump.before, lines);
    EXPECT_THAT(dump_lines(dump), IsEmpty());
    // Broken lines inside of a dump.
    const FaultDump broken =
        fault_dump({"Thread 0x1 (most recent call first):", "  File \"", "  File \"\", line ",
                    "  File \"a\", line x in ", "  File ???, line ??? in ???"});
    EXPECT_EQ(broken.threads.size(), 1u);
}

}  // namespace
}  // namespace ddprun::agent
