// How Slurm's commands are called, and what becomes of their answers. The commands are small shell
// scripts in a folder of the test. An answer may fail at any time, and no job may depend on one.
#include "launcher/in_slurm/slurm_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "slurm/time_left.h"

namespace ddprun::launcher {
namespace {

using testing::HasSubstr;

class SlurmCallsTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "slurm_calls_XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // Makes one of Slurm's commands, a shell script that comes first in PATH.
    void command(const std::string& name, const std::string& text) {
        const auto path = folder_ / name;
        std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
        ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
    }
    // The user's environment has SQUEUE_FORMAT, which changes what squeue prints.
    SlurmCalls calls() {
        return {loop_,
                slurm::JobId(environment_),
                {{"PATH", folder_.string() + ":/usr/bin:/bin"}, {"SQUEUE_FORMAT", "%i"}}};
    }
    // What becomes of a question that a coroutine asks.
    template <class Answer>
    Answer run(boost::asio::awaitable<Answer> asked) {
        std::optional<Answer> answer;
        boost::asio::co_spawn(
            loop_, [&]() -> boost::asio::awaitable<void> { answer = co_await std::move(asked); },
            boost::asio::detached);
        loop_.restart();
        loop_.run();
        return answer ? *answer : Answer(Error(ErrorCode::internal, "no answer"));
    }
    // As the leader does it: first Slurm has to show the job.
    Result<> requeue() {
        const SlurmCalls slurm = calls();
        const auto job = run(slurm.show_job());
        return job ? run(slurm.requeue(*job)) : Result<>(job.error());
    }
    // Slurm's answer; none: it has given none, and the caller keeps what it knows.
    std::optional<SlurmCalls::TimeLeft> times_left() {
        std::optional<SlurmCalls::TimeLeft> left;
        calls().time_left("0", [&left](SlurmCalls::TimeLeft answer) { left = answer; });
        loop_.restart();
        loop_.run();
        return left;
    }
    std::optional<std::chrono::seconds> time_left() {
        const auto left = times_left();
        return left ? std::optional(left->job) : std::nullopt;
    }

    boost::asio::io_context loop_;
    std::filesystem::path folder_;
    std::map<std::string, std::string> environment_{{"SLURM_JOB_ID", "8812"}};
};

// What scontrol does as long as it shows jobs; then comes what else it does.
const std::string kShows =
    "if [ \"$1\" = show ]; then printf 'JobId=8812 JobName=a\\n  Restarts=0 BatchFlag=1\\n'; exit; "
    "fi\n";

// Slurm signals all processes of a step that it requeues, also the scontrol that has asked for it.
// If scontrol died of that, ddprun would report a failed requeue.
TEST_F(SlurmCallsTest, RequeueIsNotEndedByTheSignalItCauses) {
    command("scontrol", kShows + "kill -TERM $$; [ \"$*\" = 'requeue 8812' ]");
    const auto answer = requeue();
    EXPECT_TRUE(answer) << answer.error().sentence();
}

// The reason is in scontrol's own words, since only they say what to do.
TEST_F(SlurmCallsTest, TellsWhatScontrolSays) {
    command("scontrol", kShows + "echo 'Requested operation is presently disabled' >&2; exit 1");
    EXPECT_THAT(requeue().error().sentence(), HasSubstr("presently disabled"));
}

// The element with the array's own id. Its environment may not tell the task: then all elements are
// shown. Slurm is never told the array's id alone to change something.
TEST_F(SlurmCallsTest, AnElementIsRequeuedByItself) {
    command("scontrol",
            "if [ $1 = show ]; then printf '"
            "JobId=8813 ArrayJobId=8812 ArrayTaskId=0 JobName=a\\n\\n"
            "JobId=8812 ArrayJobId=8812 ArrayTaskId=2 JobName=a\\n\\n'; exit; fi\n"
            "[ \"$*\" = 'requeue 8812_2' ] || { echo \"$*\"; exit 1; }");
    auto answer = requeue();
    EXPECT_TRUE(answer) << answer.error().sentence();
    environment_.insert({{"SLURM_ARRAY_JOB_ID", "8812"}, {"SLURM_ARRAY_TASK_ID", "2"}});
    answer = requeue();
    EXPECT_TRUE(answer) << answer.error().sentence();
    command("squeue",
            "case \"$*\" in '-h -o %A %i %L -j 8812_2') echo 8812 8812_2 2:00;; "
            "'-s -h -o %i %l %M -j 8812_2') echo 8812_2.0 1:00 0:10;; *) exit 1;; esac");
    EXPECT_EQ(times_left()->job, std::chrono::seconds{120});
    EXPECT_EQ(times_left()->step, std::chrono::seconds{50});
}

// The element alone, in whole seconds, and not ended by the signal of the requeue before.
TEST_F(SlurmCallsTest, ARequeuedElementBeginsSoon) {
    command("scontrol",
            "if [ \"$*\" = 'show job 8812' ]; then "
            "printf 'JobId=8812 ArrayJobId=8812 ArrayTaskId=2 JobName=a\\n'; exit; fi\n"
            "if [ \"$*\" = 'show config' ]; then echo 'AuthInfo = cred_expire=20'; exit; fi\n"
            "kill -TERM $$; [ \"$*\" = 'update jobid=8812_2 starttime=now+7' ] || "
            "{ echo refused; exit 1; }");
    const auto job = run(calls().show_job());
    ASSERT_TRUE(job) << job.error().sentence();
    const auto answer = run(calls().begin_in(*job, std::chrono::seconds{7}));
    EXPECT_TRUE(answer) << answer.error().sentence();
    EXPECT_EQ(run(calls().begin_in(*job, std::chrono::seconds{8})).error().sentence(), "refused");
    EXPECT_EQ(run(calls().requeue_delay()).value(), std::chrono::seconds{21});
}

// Slurm's signals come to a new command before its shell ignores them. One that may be repeated is;
// a second requeue could end the next life of the job.
TEST_F(SlurmCallsTest, RepeatsWhatASignalHasEnded) {
    const std::string once = "[ -e $0.$1 ] || { : >$0.$1; kill -KILL $$; }\n";
    command("scontrol", once + "[ \"$1\" != requeue ] || : >$0.twice\n" + kShows);
    const auto job = run(calls().show_job());
    ASSERT_TRUE(job) << job.error().sentence();
    EXPECT_TRUE(run(calls().begin_in(*job, std::chrono::seconds{7})));
    EXPECT_FALSE(run(calls().requeue(*job)));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "scontrol.twice"));
}

// Nobody knows then whether 8812 is one job or an array, so nothing is changed.
TEST_F(SlurmCallsTest, AJobThatIsNotShownIsNotRequeued) {
    command("scontrol", "[ $1 = show ] || exit 0; echo 'Unable to contact controller' >&2; exit 1");
    EXPECT_THAT(requeue().error().sentence(), HasSubstr("scontrol: Unable to contact"));
    command("scontrol", "echo JobId=8813 ArrayJobId=8812 ArrayTaskId=1 JobName=a");
    EXPECT_THAT(requeue().error().sentence(), HasSubstr("does not show job 8812 by itself"));
}

// The script checks its arguments too: one call for all nodes, with a folded list.
TEST_F(SlurmCallsTest, ReadsWhichNodesAreOutOfService) {
    command("sinfo", "[ \"$*\" = '-h -N -o %N %T -n n[1-3]' ] && printf 'n1 mixed\nn3 drained\n'");
    std::map<std::string, std::string> nodes;
    calls().out_of_service({"n1", "n2", "n3"}, [&nodes](auto said) { nodes = std::move(said); });
    loop_.run();
    EXPECT_THAT(nodes, testing::ElementsAre(testing::Pair("n3", "drained")));
}

// A command that fails may print half an answer. That must not take a node out of service.
TEST_F(SlurmCallsTest, WithoutAnAnswerNothingIsSaidOfNodes) {
    command("sinfo", "echo 'n1 down'; exit 1");
    bool called = false;
    calls().out_of_service({"n1"}, [&called](const auto&) { called = true; });
    loop_.run();
    EXPECT_FALSE(called);
}

// Prints the user's format if it is set, else the time.
TEST_F(SlurmCallsTest, ReadsTheTimeLeftWithoutTheUsersFormat) {
    command("squeue", "echo \"8812 8812 ${SQUEUE_FORMAT-1:02:03}\"");
    EXPECT_EQ(time_left(), std::chrono::seconds{3723});
}

// "No limit" is an answer, and another one than no answer.
TEST_F(SlurmCallsTest, KnowsAJobWithoutALimit) {
    command("squeue", "echo 8812 8812 UNLIMITED");
    EXPECT_EQ(time_left(), slurm::kNoLimit);
}

// A limit of the step that is known must not get lost because Slurm does not answer once.
TEST_F(SlurmCallsTest, BothTimesOrNone) {
    command("squeue", "[ $1 != -s ] && echo 8812 8812 1:00");
    EXPECT_EQ(time_left(), std::nullopt);
    command("squeue", "[ $1 = -s ] || echo 8812 8812 1:00");
    EXPECT_EQ(times_left()->step, slurm::kNoLimit);
}

// Slurm's controller is away for a moment. That must not take away an end that is known already.
TEST_F(SlurmCallsTest, TellsNoTimeLeftWhereSlurmDoesNot) {
    for (const char* answer :
         {"echo 'slurm_load_jobs error' >&2; exit 1", "echo 8812 8812 INVALID", "true"}) {
        command("squeue", answer);
        EXPECT_EQ(time_left(), std::nullopt) << answer;
    }
}

}  // namespace
}  // namespace ddprun::launcher
