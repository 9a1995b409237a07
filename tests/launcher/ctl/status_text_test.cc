// What ddpctl prints about a running job: pure texts.
#include "launcher/ctl/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 1'800'000'000 * kSecond;

void add_node(control::StatusReply& job, const std::string& name, const std::string& state,
              const std::string& why, int first_rank) {
    control::Node& node = *job.add_nodes();
    node.set_name(name);
    node.set_state(state);
    node.set_why(why);
    node.set_first_rank(first_rank);
    node.set_workers(4);
}

// Generation 2 runs on n1 and n2, led by n1.
control::StatusReply running() {
    control::StatusReply job;
    job.set_run_id("8812");
    job.set_leader("n1");
    job.set_phase("running");
    job.set_generation(2);
    job.set_runs(true);
    job.set_since(kNow - 60 * kSecond);
    job.set_now(kNow);
    job.set_world_size(8);
    job.set_restarts(1);
    job.set_max_restarts(3);
    job.set_step(-1);
    job.set_snapshot(-1);
    job.set_cause("rank 3 exited with 9");
    job.set_last_failure(job.cause());
    add_node(job, "n1", "running", "", 0);
    add_node(job, "n2", "running", "", 4);
    return job;
}

// The same job, while n2 is gone.
control::StatusReply waiting() {
    control::StatusReply job = running();
    job.set_runs(false);
    job.set_phase("gathering");
    job.set_waiting_for("waiting for n2: its ddprun has ended");
    job.set_last_failure("node n2 is gone: its ddprun has ended");
    job.mutable_nodes(1)->set_state("gone");
    job.mutable_nodes(1)->set_why("its ddprun has ended");
    job.mutable_nodes(1)->set_heard(kNow - 7 * kSecond);
    return job;
}

TEST(StatusText, ShowsAJobThatRuns) {
    EXPECT_EQ(status_text(running()),
              "job         8812, led by n1\n"
              "generation  2 runs since 60 s with 8 workers\n"
              "restarts    1 of 3 used\n"
              "failure     rank 3 exited with 9\n"
              "NODE  STATE    RANKS  WHY\n"
              "n1    running  0-3\n"
              "n2    running  4-7\n");
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

TEST(StatusText, NobodyWritesToTheTerminalThroughIt) {
    control::StatusReply job = running();
    job.set_last_failure("bad\x1b[2J\nthing");
    EXPECT_THAT(status_text(job), Not(HasSubstr("\x1b")));
    EXPECT_THAT(status_text(job), HasSubstr("failure     bad"));
    EXPECT_THAT(status_json(job), Not(HasSubstr("\x1b")));
}

std::vector<std::string> told(const control::StatusReply* before, const control::StatusReply& now) {
    std::vector<std::string> all;
    for (const JobEvent& event : events_between(before, now))
        all.push_back(event.kind + ": " + event.sentence);
    return all;
}

TEST(Events, TellWhatHasChanged) {
    const control::StatusReply first = running(), second = waiting();
    EXPECT_THAT(told(nullptr, first), testing::ElementsAre("leader: n1 leads",
                                                           "generation: generation 2 runs with 8 "
                                                           "workers: rank 3 exited with 9"));
    EXPECT_THAT(told(&first, first), testing::IsEmpty());
    EXPECT_THAT(told(&first, second),
                testing::ElementsAre("generation: generation 2 has ended: node n2 is gone: its "
                                     "ddprun has ended",
                                     "waiting: waiting for n2: its ddprun has ended",
                                     "node: n2 is gone: its ddprun has ended"));
}

// While nobody looked, one generation ended and the next one began.
TEST(Events, TellOfAGenerationThatFollowedAtOnce) {
    const control::StatusReply first = running();
    control::StatusReply next = running();
    next.set_generation(3);
    next.set_cause("restarted by alice@login1 with ddpctl");
    next.set_last_failure(next.cause());
    EXPECT_THAT(told(&first, next),
                testing::ElementsAre(HasSubstr("generation 2 has ended: restarted by alice"),
                                     HasSubstr("generation 3 runs with 8 workers: restarted by")));
    next.mutable_ended()->set_code(143);
    EXPECT_THAT(told(&first, next).back(), HasSubstr("the job has ended with code 143"));
}

TEST(Events, AreOneLineEachInJson) {
    const std::string json = event_json({"node", "n2 is \xff gone"}, running());
    EXPECT_EQ(std::ranges::count(json, '\n'), 1);
    EXPECT_THAT(json, HasSubstr("\"event\":\"node\""));
}

// Two processes of one host have one name. Nothing has changed, so nothing is told.
TEST(Events, OfTwoNodesOfOneName) {
    control::StatusReply job = running();
    for (const char* state : {"running", "spare"}) {
        control::Node& node = *job.add_nodes();
        node.set_name("h");
        node.set_state(state);
    }
    EXPECT_TRUE(events_between(&job, job).empty());
}

}  // namespace
}  // namespace ddprun::launcher
