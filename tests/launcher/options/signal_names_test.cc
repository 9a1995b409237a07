// Signals by name, for --signals-to-handle. Pure.
#include "launcher/options/signal_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace ddprun::launcher {
namespace {

using testing::ElementsAre;

TEST(SignalNames, ReadsPythonsSpelling) {
    EXPECT_THAT(*read_signals("SIGTERM,SIGUSR1, SIGUSR2,SIGTERM"),
                ElementsAre(SIGTERM, SIGUSR1, SIGUSR2));
}

// No program can handle SIGKILL and SIGSTOP, and SIGCHLD is no request to stop. torchrun takes full
// names in capital letters only.
TEST(SignalNames, RefusesWhatCannotBeHandled) {
    for (const char* bad : {"SIGKILL", "SIGSTOP", "SIGCHLD", "TERM", "sigterm", "", "15"})
        EXPECT_FALSE(read_signals(bad)) << bad;
    EXPECT_EQ(read_signals("SIGTRM").error().sentence(),
              "SIGTRM is not a signal; did you mean SIGTERM?");
}

}  // namespace
}  // namespace ddprun::launcher
