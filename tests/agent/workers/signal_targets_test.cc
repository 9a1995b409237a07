// Which processes of a worker a signal reaches, for the layouts that people run.
#include "agent/workers/signal_targets.h"

#include <gmock/gmock.h>

#include <map>

#include "agent/workers/passed_signals.h"

namespace ddprun::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr bool kHandles = true;
constexpr const char* kPython = "/usr/bin/python3.11";
constexpr const char* kBash = "/usr/bin/bash";

class SignalTargetsTest : public testing::Test {
  protected:
    void process(std::int64_t pid, const char* program, bool handles,
                 std::vector<std::int64_t> children = {}) {
        processes_[pid] = {handles, false, false, program, std::move(children)};
    }
    // It does nothing but wait for its child.
    void waiting(std::int64_t pid, const char* program, bool handles,
                 std::vector<std::int64_t> children) {
        processes_[pid] = {handles, false, true, program, std::move(children)};
    }
    SignalTargets targets() {
        return signal_targets(1, [this](std::int64_t pid) -> std::optional<SeenProcess> {
            const auto found = processes_.find(pid);
            if (found == processes_.end()) return std::nullopt;
            return found->second;
        });
    }

    std::map<std::int64_t, SeenProcess> processes_;
};

TEST_F(SignalTargetsTest, RankWithHandlerGetsItAloneWhateverItsLoadersDo) {
    process(1, kPython, kHandles, {2, 3});
    process(2, kPython, kHandles);
    process(3, kPython, !kHandles);
    EXPECT_THAT(targets().processes, ElementsAre(1));
    EXPECT_TRUE(targets().has_program);
}

TEST_F(SignalTargetsTest, HelperOfAnotherProgramIsNotTheProgramOfARank) {
    process(1, kPython, !kHandles, {2});
    process(2, "/opt/wandb-core", kHandles);
    EXPECT_THAT(targets().processes, IsEmpty());
}

TEST_F(SignalTargetsTest, LoadersWithHandlersOfTheirOwnDoNotStandForARankWithoutOne) {
    waiting(1, kPython, !kHandles, {2});
    process(2, kPython, kHandles);
    EXPECT_THAT(targets().processes, IsEmpty());
    EXPECT_FALSE(targets().has_ended);
}

TEST_F(SignalTargetsTest, ShellIsLookedThroughToItsProgramAlone) {
    process(1, kBash, !kHandles, {2, 4});
    process(2, kPython, kHandles, {3});
    process(3, kPython, kHandles);  // a loader
    process(4, "/usr/bin/tee", !kHandles);
    EXPECT_THAT(targets().processes, ElementsAre(2));
    EXPECT_TRUE(targets().has_program);
}

TEST_F(SignalTargetsTest, ShellWithTrapGetsItBesideItsProgram) {
    process(1, kBash, kHandles, {2});
    process(2, kPython, kHandles);
    EXPECT_THAT(targets().processes, UnorderedElementsAre(1, 2));
    EXPECT_TRUE(targets().has_program);
}

TEST_F(SignalTargetsTest, ShellWithTrapAroundAPlainProgramIsNoProgram) {
    process(1, kBash, kHandles, {2});
    process(2, "/usr/bin/sleep", !kHandles);
    EXPECT_THAT(targets().processes, ElementsAre(1));
    EXPECT_FALSE(targets().has_program);
}

TEST_F(SignalTargetsTest, SubshellsAndShellsInShellsAreLookedThrough) {
    process(1, "/usr/bin/dash", !kHandles, {2});
    process(2, kBash, !kHandles, {3});
    process(3, kBash, !kHandles, {4});
    process(4, kPython, kHandles);
    EXPECT_THAT(targets().processes, ElementsAre(4));
}

TEST_F(SignalTargetsTest, ProcessThatOnlyWaitsForAnotherProgramIsAWrapper) {
    waiting(1, "/usr/bin/time", !kHandles, {2});
    process(2, kPython, kHandles);
    EXPECT_THAT(targets().processes, ElementsAre(2));
    processes_[1].only_waits = false;
    EXPECT_THAT(targets().processes, IsEmpty());
    processes_[1].only_waits = true;
    processes_[1].children = {2, 3};
    EXPECT_THAT(targets().processes, IsEmpty());
}

TEST_F(SignalTargetsTest, WrapperWithHandlerPassesItOnItself) {
    waiting(1, "/usr/bin/tini", kHandles, {2});
    process(2, kPython, kHandles);
    EXPECT_THAT(targets().processes, ElementsAre(1));
    EXPECT_TRUE(targets().has_program);
}

TEST_F(SignalTargetsTest, RankThatIgnoresItKeepsItsLoaders) {
    process(1, kPython, !kHandles, {2});
    processes_[1].ignores = true;
    process(2, kPython, kHandles);
    EXPECT_THAT(targets().processes, ElementsAre(1));
    EXPECT_TRUE(targets().has_program);
}

TEST_F(SignalTargetsTest, WrapperThatIgnoresItIsLookedThrough) {
    waiting(1, "/usr/bin/time", !kHandles, {2});
    processes_[1].ignores = true;
    process(2, kPython, kHandles);
    EXPECT_THAT(targets().processes, UnorderedElementsAre(1, 2));
    EXPECT_TRUE(targets().has_program);
    processes_[2].handles = false;
    EXPECT_FALSE(targets().has_program);
}

TEST_F(SignalTargetsTest, EndedProcessesAreLeftOut) {
    EXPECT_TRUE(targets().has_ended);
    process(1, kBash, !kHandles, {2, 3});
    process(3, kPython, kHandles);
    EXPECT_THAT(targets().processes, ElementsAre(3));
}

TEST_F(SignalTargetsTest, ACircleThatNoKernelShowsEnds) {
    process(1, kBash, !kHandles, {1});
    EXPECT_THAT(targets().processes, IsEmpty());
}

TEST(IsShell, TakesTheLastPartOfThePath) {
    EXPECT_TRUE(is_shell("/bin/sh"));
    EXPECT_TRUE(is_shell("/usr/bin/bash (deleted)"));
    EXPECT_FALSE(is_shell("/opt/bash/python"));
    EXPECT_FALSE(is_shell(""));
}

TEST(ThreadStatus, IsReadFromTheKernelsText) {
    const ThreadStatus status = parse_thread_status(
        "Name:\tSigCgt:\nUmask:\t0022\nState:\tS (sleeping)\nThreads:\t12\n"
        "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000004000\n"
        "SigIgn:\t0000000001001000\nSigCgt:\t8000000000000202\nCapInh:\t0000000000000000\n");
    EXPECT_FALSE(status.has_ended());
    EXPECT_EQ(status.threads, 12);
    EXPECT_TRUE(status.blocks(15));
    EXPECT_FALSE(status.blocks(14));
    for (const int caught : {2, 10, 64}) EXPECT_TRUE(status.catches(caught)) << caught;
    EXPECT_FALSE(status.catches(13));
    EXPECT_FALSE(status.catches(15));
    EXPECT_TRUE(status.ignores(13));
    EXPECT_FALSE(status.ignores(10));
}

TEST(ThreadStatus, ZombiesAndMissingTextsHaveEnded) {
    EXPECT_TRUE(parse_thread_status("").has_ended());
    EXPECT_TRUE(parse_thread_status("Name:\tx\nState:\tZ (zombie)\n").has_ended());
    EXPECT_TRUE(parse_thread_status("Name:\tx\nState:\t").has_ended());
    EXPECT_FALSE(parse_thread_status("Name:\tx\nState:\tT (stopped)\n").has_ended());
}

TEST(SparedSentence, NamesAtMostThreeRanks) {
    EXPECT_EQ(spared_sentence(10, {4}),
              "SIGUSR1 was kept from rank 4, which would die of it; a rank gets it as soon as it "
              "has a handler for it");
    EXPECT_THAT(spared_sentence(12, {0, 1, 2, 3, 7}),
                testing::StartsWith("SIGUSR2 was kept from ranks 0, 1, 2 and 2 more, which"));
}

}  // namespace
}  // namespace ddprun::agent
