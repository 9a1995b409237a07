// Which name was probably meant by one that does not exist. Pure. A good guess saves the user a
// look into --help; a wild guess only misleads.
#include "base/command_line/nearest.h"

#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

// Some of ddprun's options.
constexpr std::string_view kNames[] = {"nnodes", "nproc-per-node", "node-rank", "standalone"};

// A letter too many, two swapped letters, a missing letter.
TEST(Nearest, FindsWhatWasMeant) {
    EXPECT_EQ(nearest("nproc-per-nodes", kNames), "nproc-per-node");
    EXPECT_EQ(nearest("nnoeds", kNames), "nnodes");
    EXPECT_EQ(nearest("stanalone", kNames), "standalone");
}

// "csh" is one slip away from "zsh" and from "tcsh". People leave a letter out more often than they
// type a wrong one, so the longer name wins.
TEST(Nearest, PrefersTheLongerOfEquals) {
    constexpr std::string_view kShells[] = {"bash", "zsh", "fish", "tcsh"};
    EXPECT_EQ(nearest("csh", kShells), "tcsh");
    constexpr std::string_view kSwitch[] = {"on", "off"};
    EXPECT_EQ(nearest("of", kSwitch), "off");
    // Here the shorter name is closer, and closeness comes first.
    EXPECT_EQ(nearest("onn", kSwitch), "on");
}

// The last text is far too long for a typing error. It must not cost memory or time either.
TEST(Nearest, DoesNotGuessWildly) {
    EXPECT_EQ(nearest("frobnicate", kNames), "");
    EXPECT_EQ(nearest("", kNames), "");
    EXPECT_EQ(nearest(std::string(10'000, 'n'), kNames), "");
}

}  // namespace
}  // namespace ddprun::launcher
