// What has happened between two looks at a job. Pure.
#include "operator/control/job_events.h"

#include <gmock/gmock.h>

#include "tests/operator/control/status_examples.h"

namespace ddprun::rendezvous {
namespace {

using namespace examples;
using testing::HasSubstr;

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
    EXPECT_THAT(told(&first, next),
                testing::ElementsAre(HasSubstr("generation 2 has ended: restarted by alice"),
                                     HasSubstr("generation 3 runs with 8 workers: restarted by")));
    next.mutable_ended()->set_code(143);
    EXPECT_THAT(told(&first, next).back(), HasSubstr("the job has ended with code 143"));
}

TEST(Events, TellOfAStandstillAndItsEnd) {
    const control::StatusReply moves = running();
    control::StatusReply stands = running(), failed = running();
    stands.set_standstill("7 ranks have waited for 15 s");
    EXPECT_THAT(told(&moves, stands),
                testing::ElementsAre("standstill: 7 ranks have waited for 15 s"));
    EXPECT_THAT(told(&stands, moves), testing::ElementsAre("standstill: its workers move again"));
    failed.set_runs(false);
    EXPECT_THAT(told(&stands, failed), testing::ElementsAre(HasSubstr("generation 2 has ended")));
}

// A job that fails again and again in the same words; and one that is complete.
TEST(Events, GiveAGenerationTheReasonOfItsOwnEnd) {
    const control::StatusReply first = running();
    control::StatusReply failed = running(), next = running(), complete = running();
    failed.set_runs(false);
    failed.set_ended_by(first.cause());
    EXPECT_THAT(told(&first, failed),
                testing::ElementsAre("generation: generation 2 has ended: rank 3 exited with 9"));
    next.set_generation(3);
    EXPECT_THAT(told(&first, next)[0], HasSubstr("generation 2 has ended: rank 3 exited with 9"));
    EXPECT_EQ(events_between(&first, next)[0].generation, 2);
    EXPECT_EQ(events_between(&first, next)[1].generation, 3);
    next.set_generation(4);
    EXPECT_THAT(told(&first, next)[0], testing::EndsWith("generation 2 has ended"))
        << "the cause is that of generation 3";
    complete.set_runs(false);
    EXPECT_THAT(told(&first, complete), testing::ElementsAre("generation: generation 2 has ended"));
}

TEST(Events, AreOneLineEachInJson) {
    const std::string json = event_json({"node", "n2 is \xff gone", 2}, running());
    EXPECT_EQ(std::ranges::count(json, '\n'), 1);
    EXPECT_THAT(json, HasSubstr("\"event\":\"node\""));
    EXPECT_THAT(json, HasSubstr("\"run_id\":\"8812\",\"generation\":2}"));
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
}  // namespace ddprun::rendezvous
