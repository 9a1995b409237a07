#include "launcher/options/nearest.h"

#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

constexpr std::string_view kNames[] = {"nnodes", "nproc-per-node", "node-rank", "standalone"};

// One slip, two swapped letters, a letter too many: still meant.
TEST(Nearest, FindsWhatWasMeant) {
    EXPECT_EQ(nearest("nproc-per-nodes", kNames), "nproc-per-node");
    EXPECT_EQ(nearest("nnoeds", kNames), "nnodes");
    EXPECT_EQ(nearest("stanalone", kNames), "standalone");
}

// As many slips from zsh and from tcsh, but a letter is left out more often than mistaken.
TEST(Nearest, PrefersTheLongerOfEquals) {
    constexpr std::string_view kShells[] = {"bash", "zsh", "fish", "tcsh"};
    EXPECT_EQ(nearest("csh", kShells), "tcsh");
    constexpr std::string_view kSwitch[] = {"on", "off"};
    EXPECT_EQ(nearest("of", kSwitch), "off");
    EXPECT_EQ(nearest("onn", kSwitch), "on");
}

TEST(Nearest, DoesNotGuessWildly) {
    EXPECT_EQ(nearest("frobnicate", kNames), "");
    EXPECT_EQ(nearest("", kNames), "");
    EXPECT_EQ(nearest(std::string(10'000, 'n'), kNames), "");
}

}  // namespace
}  // namespace ddprun::launcher
