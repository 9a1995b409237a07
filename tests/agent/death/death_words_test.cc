// The small pure files behind a death's account: error files, kernel texts, core patterns, words.
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

TEST(ErrorAccount, IsTheLastLineOfWhatRecordWrites) {
    EXPECT_EQ(*read_error_account(R"({"message": {"message": "ValueError: a\nb: c\n ",
        "extraInfo": {"py_callstack": "x", "timestamp": "1"}}})"),
              "b: c");
    EXPECT_EQ(*read_error_account(R"({"message": "plain", "timestamp": 1})"), "plain");
    EXPECT_EQ(*read_error_account(R"({"message": ""})"), "");
}

TEST(ErrorAccount, IsBoundedHoweverLongTheLine) {
    const std::string text = R"({"message": ")" + std::string(100'000, 'x') + R"("})";
    EXPECT_EQ(read_error_account(text)->size(), 1000u);
}

TEST(ErrorAccount, SaysWhatIsWrongWithAnotherForm) {
    for (const char* text : {"", "{", "not", "{\"message\": \"cut"})
        EXPECT_EQ(read_error_account(text).error().sentence(), "is not JSON") << text;
    for (const char* text : {"[]", "3", "{}", R"({"message": 3})", R"({"message": {"x": 1}})",
                             R"({"message": {"message": {"message": "too deep"}}})"})
        EXPECT_EQ(read_error_account(text).error().sentence(), "has no text \"message\"") << text;
    EXPECT_FALSE(read_error_account(std::string(1 << 20, '[')));
}

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

TEST(MemoryKills, ReadsBothVersionsOfTheCount) {
    EXPECT_EQ(memory_kill_count("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3);
    EXPECT_EQ(memory_kill_count("low 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 9\n"), 1);
    EXPECT_EQ(memory_kill_count("oom_kill 4"), 4);
    EXPECT_EQ(memory_kill_count("oom_kill_disable 0\nunder_oom 0\n"), std::nullopt);
    EXPECT_EQ(memory_kill_count(""), std::nullopt);
}

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

TEST(CoreDump, IsWhereThePatternSays) {
    CoreDumpFacts facts{"core", true, "/data", 4711, 11, "gpu01"};
    EXPECT_EQ(core_dump_place(facts), "/data/core.4711");
    facts.pattern = "/cores/%h-%p-%s.%%";
    EXPECT_EQ(core_dump_place(facts), "/cores/gpu01-4711-11.%");
    facts.pattern = "core.%e.%t", facts.uses_pid = false;
    EXPECT_EQ(core_dump_place(facts), "/data/core.%e.%t");
    facts.pattern = "";
    EXPECT_EQ(core_dump_place(facts), "/data/core");
    facts.pattern = "|/usr/lib/systemd/systemd-coredump %P %u";
    EXPECT_EQ(core_dump_place(facts), "see coredumpctl info 4711");
    facts.pattern = "|/usr/share/apport/apport";
    EXPECT_EQ(core_dump_place(facts), "handed to apport");
}

TEST(KnownWords, SayWhatToDo) {
    EXPECT_THAT(known_words("OSError: [Errno 28] No space left on device", {}), HasSubstr("df -h"));
    EXPECT_THAT(
        known_words("", {"./train: error while loading shared libraries: libx.so: cannot", "bye"}),
        HasSubstr("ldd"));
    EXPECT_EQ(known_words("", {"all is well"}), "");
}

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
