// The small pure parsers behind the report of a death: error files, the kernel's words about
// memory, core patterns, known error texts, processes that SIGKILL does not end. Inputs are texts.
#include <gmock/gmock.h>

#include "agent/death/core_dump.h"
#include "agent/death/error_account.h"
#include "agent/death/known_words.h"
#include "agent/death/memory_kills.h"
#include "agent/death/stuck.h"

using namespace ddprun;
using namespace ddprun::agent;
using testing::ElementsAre;
using testing::HasSubstr;

// The nested form is what torchrun's @record writes; its message is a whole Python traceback, whose
// last line has the exception. Blank space behind that line must not hide it.
TEST(ErrorAccount, IsTheLastLineOfWhatRecordWrites) {
    EXPECT_EQ(read_error_account(R"({"message": {"message": "ValueError: a\nb: c\n ",
        "extraInfo": {"py_callstack": "x", "timestamp": "1"}}})")
                  ->error,
              "b: c");
    EXPECT_EQ(read_error_account(R"({"message": "plain", "timestamp": 1})")->error, "plain");
    EXPECT_EQ(read_error_account(R"({"message": ""})")->error, "");
}

// The trainer tells its exit code. Most files have none, and the worker may write any.
TEST(ErrorAccount, MayTellTheExitCode) {
    const auto code_of = [](const std::string& code) {
        return read_error_account(R"({"message": {"message": "usage", "errorCode": )" + code + "}}")
            ->exit_code;
    };
    EXPECT_EQ(code_of("2"), 2);
    EXPECT_EQ(code_of("255"), 255);
    for (const char* wrong : {"0", "-1", "256", "1e99", "18446744073709551615", "\"2\"", "null"})
        EXPECT_EQ(code_of(wrong), 1) << wrong;
    EXPECT_EQ(read_error_account(R"({"message": "plain", "errorCode": 2})")->exit_code, 1);
}

// The text travels to the leader and stands in one line of the report. A worker must not flood
// them.
TEST(ErrorAccount, IsBoundedHoweverLongTheLine) {
    const std::string text = R"({"message": ")" + std::string(100'000, 'x') + R"("})";
    EXPECT_EQ(read_error_account(text)->error.size(), 1000u);
}

// The worker may have died in the middle of writing, or another program may write the file.
TEST(ErrorAccount, SaysWhatIsWrongWithAnotherForm) {
    EXPECT_EQ(read_error_account("").error().sentence(), "is empty");
    for (const char* text : {"{", "not", "{\"message\": \"cut"})
        EXPECT_EQ(read_error_account(text).error().sentence(), "is not JSON") << text;
    for (const char* text : {"[]", "3", "{}", R"({"message": 3})", R"({"message": {"x": 1}})",
                             R"({"message": {"message": {"message": "too deep"}}})"})
        EXPECT_EQ(read_error_account(text).error().sentence(), "has no text \"message\"") << text;
    // The deepest nesting that fits into the largest file that is read (1 MiB). A parser that calls
    // itself for each level would overflow the stack of ddprun here.
    EXPECT_FALSE(read_error_account(std::string(1 << 20, '[')));
}

// Each line of /proc/self/cgroup is "id:controllers:path". The first text is a host with both
// cgroup versions, the second one has version 2 only. In a container the path may not exist, so the
// root of the mount is a candidate too.
TEST(MemoryKills, AreCountedWhereTheControlGroupIs) {
    EXPECT_THAT(
        memory_kill_files("9:name=systemd:/\n4:cpu,memory:/job/step\n0::/\n"),
        ElementsAre("/sys/fs/cgroup/memory/job/step/memory.oom_control",
                    "/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"));
    EXPECT_THAT(
        memory_kill_files("0::/slurm/job_7"),
        ElementsAre("/sys/fs/cgroup/slurm/job_7/memory.events", "/sys/fs/cgroup/memory.events"));
    EXPECT_THAT(memory_kill_files("rubbish\n::\n"), ElementsAre("/sys/fs/cgroup/memory.events"));
}

// The number must come from the line "oom_kill", although longer names with these letters
// ("oom_kill_disable", "oom_group_kill") stand before or behind it. Old kernels have no such line.
TEST(MemoryKills, ReadsBothVersionsOfTheCount) {
    EXPECT_EQ(memory_kill_count("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3);
    EXPECT_EQ(memory_kill_count("low 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 9\n"), 1);
    EXPECT_EQ(memory_kill_count("oom_kill 4"), 4);
    EXPECT_EQ(memory_kill_count("oom_kill_disable 0\nunder_oom 0\n"), std::nullopt);
    EXPECT_EQ(memory_kill_count(""), std::nullopt);
}

// Records of /dev/kmsg, "priority,number,time,flags;text". Not a kill for lack of memory: a record
// that does not mention memory, text without the head of a record, and a record without a pid.
TEST(MemoryKills, KnowsTheKernelsWords) {
    EXPECT_EQ(
        memory_kill_process(
            "3,99,1234,-;Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB"),
        4711);
    EXPECT_EQ(memory_kill_process("3,1,2,-;Out of memory: Killed process 7 (a b) total"), 7);
    EXPECT_EQ(memory_kill_process("6,1,2,-;Killed process 7 (x)"), std::nullopt);
    EXPECT_EQ(memory_kill_process("Out of memory: Killed process 7"), std::nullopt);
    EXPECT_EQ(memory_kill_process("3,1,2,-;Out of memory: Killed process "), std::nullopt);
}

// The patterns are those of core(5): a relative name, which means the worker's folder; specifiers;
// and "|", which hands the dump to a program. %e and %t stay, because only the kernel knows them.
TEST(CoreDump, IsWhereThePatternSays) {
    CoreDumpFacts facts{"core", true, "/data", 4711, 11, "gpu01"};
    EXPECT_EQ(core_dump_place(facts), "/data/core.4711");
    facts.pattern = "/cores/%h-%p-%s.%%";
    EXPECT_EQ(core_dump_place(facts), "/cores/gpu01-4711-11.%");
    // The first pattern above had no %p, so kernel.core_uses_pid added the pid; now it is off.
    facts.pattern = "core.%e.%t", facts.uses_pid = false;
    EXPECT_EQ(core_dump_place(facts), "/data/core.%e.%t");
    facts.pattern = "";
    EXPECT_EQ(core_dump_place(facts), "/data/core");
    facts.pattern = "|/usr/lib/systemd/systemd-coredump %P %u";
    EXPECT_EQ(core_dump_place(facts), "see coredumpctl info 4711");
    facts.pattern = "|/usr/share/apport/apport";
    EXPECT_EQ(core_dump_place(facts), "handed to apport");
}

// The words may stand in the error file or in the last lines of output. The hint must name a
// command that the user can run.
TEST(KnownWords, SayWhatToDo) {
    EXPECT_THAT(known_words("OSError: [Errno 28] No space left on device", {}), HasSubstr("df -h"));
    EXPECT_THAT(
        known_words("", {"./train: error while loading shared libraries: libx.so: cannot", "bye"}),
        HasSubstr("ldd"));
    EXPECT_THAT(known_words("ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs "
                            "found!",
                            {}),
                HasSubstr("gloo"));
    EXPECT_EQ(known_words("", {"all is well"}), "");
}

// Processes in a stalled file system survive SIGKILL. The operator learns the rank first, then how
// many others there are. A process name may hold blanks and parentheses, as "a (b) c" does.
TEST(Stuck, NamesWorkersBeforeOthers) {
    StuckProcess child = read_process_stat("12 (a (b) c) D 1 2 3");
    EXPECT_EQ(child.pid, 12);
    EXPECT_EQ(child.name, "a (b) c");
    EXPECT_EQ(child.state, 'D');
    StuckProcess worker{4711, "python3", 'D', "nfs_wait_bit_killable", 1};
    EXPECT_EQ(stuck_sentence({child, worker}, std::chrono::seconds{60}),
              "rank 1 (process 4711, python3) is still alive 60.0 s after SIGKILL: it is in an "
              "uninterruptible sleep (D) in nfs_wait_bit_killable; and 1 more process");
    child.state = 'R';
    EXPECT_EQ(stuck_sentence({child}, std::chrono::seconds{2}),
              "process 12 (a (b) c) is still alive 2.0 s after SIGKILL: it is in state R");
    EXPECT_EQ(stuck_sentence({}, std::chrono::seconds{2}), "");
    EXPECT_EQ(read_process_stat("").pid, 0);
}
