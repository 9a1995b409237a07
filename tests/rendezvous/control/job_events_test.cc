// What has happened between two looks at a job. Pure.
#include "rendezvous/control/job_events.h"

#include <gmock/gmock.h>

#include "tests/rendezvous/control/status_examples.h"

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
    next.set_last_failure(next.cause());
    EXPECT_THAT(told(&first, next),
                testing::ElementsAre(HasSubstr("generation 2 has ended: restarted by alice"),
                                     HasSubstr("generation 3 runs with 8 workers: restarted by")));
    next.mutable_ended()->set_code(143);
    EXPECT_THAT(told(&first, next).back(), HasSubstr("the job has ended with code 143"));
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
