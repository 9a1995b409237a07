// The test program is also the keeper that Keeper::restart() starts from /proc/self/exe. It is a
// subreaper, so no process of any test can get away from it. What is left at the end is a failure,
// and is killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstring>

#include "keeper/keeper.h"
#include "keeper/killing/killing.h"

int main(int argc, char** argv) {
    if (argc > 1 && std::strcmp(argv[1], ddprun::agent::kKeeperArgument) == 0)
        return ddprun::agent::keeper_main_exec(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    // As ddprun's main does: a keeper that has died must be an error of a write, not the end of
    // this process.
    ::signal(SIGPIPE, SIG_IGN);
    // Before the first test, so that the keeper of a ddprun that a test kills becomes a child of
    // this process.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    int result = RUN_ALL_TESTS();
    if (!ddprun::agent::reap_children({})) {
        std::fprintf(stderr, "a test left processes behind\n");
        result = 1;
    }
    ddprun::agent::kill_all_descendants(std::chrono::seconds{5});
    return result;
}
