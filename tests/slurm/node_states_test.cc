// Which nodes are out of service, from the output of `sinfo -h -N -o "%N %T"`. Pure.
#include "slurm/node_states.h"

#include <gmock/gmock.h>

namespace ddprun::slurm {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

// After a failure the leader does not wait for these nodes. Otherwise a job that cannot go on would
// wait for the whole join timeout before it ends. The signs behind a state (* % ~) do not matter.
TEST(NodeStates, OutOfServiceAreThoseThatDoNotComeBack) {
    EXPECT_THAT(nodes_out_of_service("n1 allocated\nn2 drained*\nn3 draining\nn4 down\nn5 fail\n"
                                     "n6 failing\nn7 mixed\nn8 powering_down%\nn9 idle~\n"),
                UnorderedElementsAre(Pair("n2", "drained"), Pair("n3", "draining"),
                                     Pair("n4", "down"), Pair("n5", "fail"), Pair("n6", "failing"),
                                     Pair("n8", "powering_down")));
}

// sinfo prints a node once for each partition that it is in.
TEST(NodeStates, ANodeIsSaidOnce) {
    EXPECT_THAT(nodes_out_of_service("n2 down*\nn2 down*\n"),
                UnorderedElementsAre(Pair("n2", "down")));
}

// A wrong answer would make the leader go on without a healthy node. So these all count as in
// service: `*` (does not answer yet), `@` (reboots after the job), lines without a name or a state,
// a state that only begins like "down", and an error message.
TEST(NodeStates, OthersAreInService) {
    for (const char* text : {"", "\n", "n1 allocated*", "n1 mixed@", "n1 reserved", "n1", " down",
                             "n1 downtown", "slurm_load_node: Unable to contact slurm controller"})
        EXPECT_THAT(nodes_out_of_service(text), IsEmpty()) << text;
}

}  // namespace
}  // namespace ddprun::slurm
