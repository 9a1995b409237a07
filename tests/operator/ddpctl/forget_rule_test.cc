// What may be forgotten: what has ended, and nothing that may still be needed unless it is named
// with force.
#include "operator/ddpctl/forget_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "rendezvous/model/stop_sentences.h"
#include "tests/operator/ddpctl/examples.h"

namespace ddprun::launcher {
namespace {

using rendezvous::Verdict;
using testing::HasSubstr;

const std::vector<FoundJob> kJobs = {ended_job("good", Verdict::succeeded, 0),
                                     ended_job("bad", Verdict::worker_failed, 7),
                                     ended_job("left", Verdict::work_left, 75),
                                     ended_job("signal", Verdict::user_signal, 143),
                                     running_job("runs"),
                                     new_job("waits"),
                                     unreadable_job("odd"),
                                     running_job("lab.1.0-finished-0000000000000abc")};

// The names of those that would go.
std::string gone(const ForgetWish& wish) {
    const auto plans = plan_forgetting(kJobs, wish, kToday);
    if (!plans) return plans.error().sentence();
    std::string names;
    for (const ForgetPlan& plan : *plans)
        if (plan.left.empty()) names += plan.job.name + " ";
    return names;
}
// Why the only job that is named is left.
std::string left(const std::string& name, bool force = false,
                 std::optional<Duration> older_than = {}) {
    return plan_forgetting(kJobs, {{name}, older_than, force}, kToday)->at(0).left;
}

// Nothing goes without a word of which.
TEST(Forget, MustBeAsked) {
    EXPECT_THAT(gone({}), HasSubstr("say which"));
    EXPECT_EQ(plan_forgetting(kJobs, {}, kToday).error().code(), ErrorCode::usage);
    EXPECT_EQ(plan_forgetting(kJobs, {{}, kDay, true}, kToday).error().code(), ErrorCode::usage);
}

// Without names only those go that nobody needs any more: they have ended, or were set aside.
TEST(Forget, TakesWhatHasEnded) {
    EXPECT_EQ(gone({{}, Duration{}, false}), "good bad lab.1.0-finished-0000000000000abc ");
    EXPECT_EQ(gone({{}, 2 * kDay, false}), "good bad lab.1.0-finished-0000000000000abc ");
    EXPECT_EQ(gone({{}, 2 * kDay + Duration{1}, false}), "");
}

TEST(Forget, TakesTheRestOnlyByNameAndForce) {
    EXPECT_EQ(left("good"), "");
    EXPECT_EQ(left("left"), "was stopped and may be started again, so --force is needed");
    EXPECT_THAT(left("signal"), HasSubstr("--force"));
    EXPECT_THAT(left("runs"), HasSubstr("may run, so --force"));
    EXPECT_THAT(left("waits"), HasSubstr("may wait for its nodes"));
    for (const char* name : {"left", "signal", "runs", "waits"}) EXPECT_EQ(left(name, true), "");
    // What is in it is not ours.
    EXPECT_THAT(left("odd", true), HasSubstr("notes.txt"));
    EXPECT_EQ(left("good", false, 3 * kDay), "is 2 d old");
    // Nothing was written since it began, ten days ago.
    EXPECT_EQ(left("waits", true, 9 * kDay), "");
}

// The owner has stopped it, so nobody starts it again. Slurm's own signal says nothing of that.
TEST(Forget, TakesWhatAnOperatorHasStopped) {
    const auto left_of = [](const std::string& sentence, bool requeue) {
        FoundJob job = ended_job("stopped", Verdict::user_signal, 143);
        auto& ending = std::get<rendezvous::EndsJob>(job.newest->act).ending;
        ending.sentence = sentence;
        ending.requeue = requeue;
        return plan_forgetting({job}, {{"stopped"}, {}, false}, kToday)->at(0).left;
    };
    const auto with_ddpctl = [](const std::string& after) {
        return rendezvous::stopped(rendezvous::operators_stop("alice@login1", after));
    };
    EXPECT_EQ(left_of(with_ddpctl(""), false), "");
    EXPECT_EQ(left_of(with_ddpctl(", after the snapshot of step 4"), false), "");
    EXPECT_NE(left_of(with_ddpctl(""), true), "") << "it goes on";
    EXPECT_EQ(left_of("stopped by alice@login1 with ddpctl", false), "") << "an older ledger";
    EXPECT_NE(left_of("stopped: SIGTERM on node n1", false), "");
}

TEST(Forget, NamesMustFit) {
    EXPECT_EQ(plan_forgetting(kJobs, {{"good", "nobody"}, {}, false}, kToday).error().code(),
              ErrorCode::not_found);
    EXPECT_EQ(gone({{"good", "good"}, {}, false}), "good ");
}

// A finished one is moved by the word of a job that begins, so that only one of both moves it.
TEST(Forget, MovesByTheRightWord) {
    EXPECT_STREQ(moved_as(kJobs[0]), "finished");
    EXPECT_STREQ(moved_as(kJobs[1]), "finished");
    EXPECT_STREQ(moved_as(kJobs[2]), "forgotten");
    EXPECT_STREQ(moved_as(kJobs[4]), "forgotten");
}

TEST(Forget, TellsWhatBecameOfEach) {
    const std::vector<Forgotten> all = {
        {{kJobs[0], ""}, ""}, {{kJobs[1], ""}, "Permission denied"}, {{kJobs[4], "may run"}, ""}};
    EXPECT_EQ(forget_text(all, false, kToday),
              "removed good: succeeded, 20.0 KiB\n"
              "bad could not be removed: Permission denied\n"
              "runs is left alone: it may run\n"
              "removed 1 ledger, 20.0 KiB\n");
    EXPECT_EQ(forget_text({all[0]}, true, kToday),
              "would remove good: succeeded, 20.0 KiB\nwould remove 1 ledger, 20.0 KiB\n");
    EXPECT_EQ(forget_code({}), 0);
    EXPECT_EQ(forget_code({all[0]}), 0);
    EXPECT_EQ(forget_code({all[2]}), 1);
    EXPECT_EQ(forget_code(all), 69);
    const auto json = nlohmann::json::parse(forget_json(all, false));
    EXPECT_EQ(json["jobs"][0]["removed"], true);
    EXPECT_EQ(json["jobs"][1]["reason"], "Permission denied");
    EXPECT_EQ(json["jobs"][2]["reason"], "may run");
    EXPECT_EQ(nlohmann::json::parse(forget_json(all, true))["jobs"][0]["removed"], false);
}

}  // namespace
}  // namespace ddprun::launcher
