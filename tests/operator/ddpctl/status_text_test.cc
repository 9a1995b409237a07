// What ddpctl prints about a running job: pure texts.
#include "operator/ddpctl/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/ddpctl/recorded_status.h"
#include "tests/operator/control/status_examples.h"

namespace ddprun::launcher {
namespace {

using namespace rendezvous::examples;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST(StatusText, ShowsAJobThatRuns) {
    EXPECT_EQ(status_text(running()),
              "job         8812, led by n1\n"
              "generation  2 runs since 60 s with 8 workers\n"
              "limits      1 to 2 nodes\n"
              "restarts    1 of 3 used\n"
              "last end    rank 3 exited with 9\n"
              "NODE  STATE    RANKS  WHY\n"
              "n1    running  0-3\n"
              "n2    running  4-7\n");
}

TEST(StatusText, ShowsLimitsAndARequestThatIsOpen) {
    control::StatusReply job = running();
    job.set_min_nodes(2);
    job.set_snapshot_asked("asked for by alice@login1, none reported since");
    const std::string text = status_text(job);
    EXPECT_THAT(text, HasSubstr("limits      2 nodes\n"));
    EXPECT_THAT(text, HasSubstr("snapshot    asked for by alice@login1, none reported since\n"));
    EXPECT_THAT(
        status_json(job),
        HasSubstr("\"snapshot_asked\": \"asked for by alice@login1, none reported since\""));
    EXPECT_THAT(status_json(running()), HasSubstr("\"snapshot_asked\": null"));
}

TEST(StatusText, SaysForWhomAJobWaits) {
    const std::string text = status_text(waiting());
    EXPECT_THAT(text, HasSubstr("generation  2 has ended\n"));
    EXPECT_THAT(text, HasSubstr("waits       waiting for n2: its ddprun has ended\n"));
    EXPECT_THAT(text,
                HasSubstr("n2    gone     4-7    its ddprun has ended, last heard 7 s ago\n"));
}

// A thousand nodes that run say nothing; the one that does not is found at once.
TEST(StatusText, OfManyNodesShowsThoseThatDoNotRun) {
    control::StatusReply job = waiting();
    for (int i = 0; i < 1000; ++i) add_node(job, "m" + std::to_string(i), "running", "", 8 + 4 * i);
    const std::string text = status_text(job);
    EXPECT_THAT(text, HasSubstr("n2    gone"));
    EXPECT_THAT(text, Not(HasSubstr("m17")));
    EXPECT_THAT(text, HasSubstr("and 1001 nodes more\n"));
}

// Of a page with twelve lines six are for nodes.
TEST(TopText, FitsIntoThePage) {
    control::StatusReply job = running();
    job.set_step(1200);
    for (int i = 0; i < 100; ++i) add_node(job, "m" + std::to_string(i), "running", "", 8 + 4 * i);
    const std::string text = top_text(job, 3.25, 15);
    EXPECT_THAT(text, HasSubstr("progress    step 1200, 3.25 steps a second\n"));
    EXPECT_LT(std::ranges::count(text, '\n'), 15);
    EXPECT_THAT(text, HasSubstr("nodes more\n"));
    // A page that is too small has the beginning, and says that there is more.
    EXPECT_THAT(top_text(job, std::nullopt, 3),
                MatchesRegex("job         8812, led by n1\n… [0-9]+ more lines: this window is too "
                             "low\n"));
    for (const std::size_t rows : {1, 2, 3, 4, 7})
        EXPECT_EQ(std::ranges::count(top_text(job, std::nullopt, rows), '\n'), rows - 1);
    EXPECT_THAT(top_text(job, std::nullopt, 15), Not(HasSubstr("too low")));
    EXPECT_THAT(top_text(job, std::nullopt, 0), Not(HasSubstr("steps a second")));
}

// A stop is under way; what runs in 12 s from now is killed.
TEST(StatusText, SaysHowLongAStopGivesTheWorkers) {
    control::StatusReply job = running();
    job.set_stopping("ddpctl stop by alice@login1");
    job.set_kills(kNow + 12 * kSecond);
    EXPECT_THAT(status_text(job), HasSubstr("stopping    ddpctl stop by alice@login1; what "
                                            "still runs is killed in 12 s\n"));
}

// What the ledger tells while nobody leads.
TEST(StatusText, SaysThatNobodyLeads) {
    FoundJob found{"lab.1.0", ".ddprun/lab.1.0"};
    found.newest.emplace();
    found.newest->leader.name = "n1";
    found.newest->assignment.generation = Generation{3};
    found.newest->assignment.world_size = 4;
    found.newest->assignment.restarts = 1;
    found.newest->assignment.max_restarts = 3;
    found.newest->assignment.members.emplace_back();
    found.newest->assignment.members.back().node.name = "n1";
    found.newest->assignment.members.back().offer.slots = 4;
    const control::StatusReply job = recorded_status(found, "n2 knows no leader", Duration{kNow});
    EXPECT_TRUE(is_recorded(job));
    EXPECT_FALSE(is_recorded(running()));
    EXPECT_EQ(status_text(job),
              "job         lab.1.0, led by no node now\n"
              "generation  3 of 4 workers, the newest that is recorded\n"
              "waits       nobody leads now; n1 has led; the other nodes wait until its lease is "
              "over, then one of them leads (n2 knows no leader); ask again\n"
              "restarts    1 of 3 used\n"
              "NODE  STATE     RANKS  WHY\n"
              "n1    recorded  0-3\n");
    EXPECT_THAT(status_json(job), HasSubstr("\"leader\": null"));
    EXPECT_THAT(status_json(job), HasSubstr("\"phase\": \"nobody leads\""));
}

TEST(StepRate, IsThatOfTheLastHalfMinute) {
    StepRate rate;
    control::StatusReply job = running();
    EXPECT_FALSE(rate.at(job)) << "no step is reported";
    const auto at = [&](int second, std::int64_t step) {
        job.set_now(kNow + second * kSecond);
        job.set_step(step);
        return rate.at(job);
    };
    EXPECT_FALSE(at(0, 100)) << "one look is not enough";
    EXPECT_DOUBLE_EQ(*at(10, 200), 10);
    EXPECT_DOUBLE_EQ(*at(30, 200), 100.0 / 30);
    EXPECT_DOUBLE_EQ(*at(40, 200), 0) << "it has stood still for half a minute";
    job.set_generation(3);
    EXPECT_FALSE(at(50, 150)) << "it began anew";
}

TEST(StatusText, NobodyWritesToTheTerminalThroughIt) {
    control::StatusReply job = running();
    job.set_ended_by("bad\x1b[2J\nthing");
    EXPECT_THAT(status_text(job), Not(HasSubstr("\x1b")));
    EXPECT_THAT(status_text(job), HasSubstr("last end    bad"));
    EXPECT_THAT(status_json(job), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace ddprun::launcher
