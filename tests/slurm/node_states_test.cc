// Nodes and their states, as sinfo says them.
#include "slurm/node_states.h"

#include <gmock/gmock.h>

namespace ddprun::slurm {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(NodeStates, OutOfServiceAreThoseThatDoNotComeBack) {
    EXPECT_THAT(nodes_out_of_service("n1 allocated\nn2 drained*\nn3 draining\nn4 down\nn5 fail\n"
                                     "n6 failing\nn7 mixed\nn8 powering_down%\nn9 idle~\n"),
                UnorderedElementsAre(Pair("n2", "drained"), Pair("n3", "draining"),
                                     Pair("n4", "down"), Pair("n5", "fail"), Pair("n6", "failing"),
                                     Pair("n8", "powering_down")));
}

// In several partitions a node is said several times.
TEST(NodeStates, ANodeIsSaidOnce) {
    EXPECT_THAT(nodes_out_of_service("n2 down*\nn2 down*\n"),
                UnorderedElementsAre(Pair("n2", "down")));
}

// Does not answer yet; is about to be rebooted when the job has ended; something else altogether.
TEST(NodeStates, OthersAreInService) {
    for (const char* text : {"", "\n", "n1 allocated*", "n1 mixed@", "n1 reserved", "n1", " down",
                             "n1 downtown", "slurm_load_node: Unable to contact slurm controller"})
        EXPECT_THAT(nodes_out_of_service(text), IsEmpty()) << text;
}

}  // namespace
}  // namespace ddprun::slurm
