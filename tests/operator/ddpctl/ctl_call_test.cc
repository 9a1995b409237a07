// ddpctl's command line: commands, options at any place, and refusals that help.
#include "operator/ddpctl/ctl_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(const std::vector<std::string>& words) {
    const auto call = read_call(words);
    if (call) return "accepted";
    EXPECT_EQ(call.error().code(), ErrorCode::usage);
    return call.error().sentence();
}

TEST(CtlCall, TakesOptionsAtAnyPlace) {
    const auto call = read_call(
        {"--ledger", "jobs", "forget", "a", "--older_than=30d", "b", "--dry", "--", "--c"});
    ASSERT_TRUE(call) << call.error();
    EXPECT_EQ(call->command->name, "forget");
    EXPECT_EQ(call->value("ledger"), "jobs");
    EXPECT_EQ(call->value("older-than"), "30d");
    EXPECT_TRUE(call->has("dry-run"));
    EXPECT_FALSE(call->has("force"));
    EXPECT_THAT(call->words, ElementsAre("a", "b", "--c"));
}

// The last of several counts, also before and behind the command.
TEST(CtlCall, TakesTheLastValue) {
    EXPECT_EQ(read_call({"--ledger=/a", "jobs", "--ledger=/b"})->value("ledger"), "/b");
}

TEST(CtlCall, HelpStandsAlone) {
    EXPECT_EQ(read_call({"--help"})->command, nullptr);
    const auto call = read_call({"jobs", "extra", "-h", "--no-such"});
    ASSERT_TRUE(call) << call.error();
    EXPECT_EQ(call->command->name, "jobs");
    EXPECT_TRUE(call->has("help"));
}

TEST(CtlCall, RefusesWithWhatWasMeant) {
    EXPECT_THAT(refusal({}), StartsWith("the command is missing: status, top, "));
    EXPECT_THAT(refusal({}), EndsWith(" or forget; see ddpctl --help"));
    EXPECT_EQ(refusal({"job"}), "job: no such command; did you mean jobs?");
    EXPECT_EQ(refusal({"reboot"}), "reboot: no such command; see ddpctl --help");
    EXPECT_EQ(refusal({"jobs", "--jason"}), "--jason: no such option; did you mean --json?");
    EXPECT_EQ(refusal({"jobs", "--frobnicate"}), "--frobnicate: no such option; see --help");
    EXPECT_EQ(refusal({"jobs", "--older-than=1d"}), "--older-than: no such option; see --help");
    EXPECT_EQ(refusal({"jobs", "lab.1.0"}),
              "lab.1.0: jobs takes options only; see ddpctl jobs --help");
    EXPECT_EQ(refusal({"jobs", "--json=1"}), "--json=1: takes no value; write --json alone");
    EXPECT_THAT(refusal({"jobs", "--ledger="}), HasSubstr("the value is empty"));
    EXPECT_THAT(refusal({"jobs", "--ledger"}), HasSubstr("its value is missing"));
    EXPECT_EQ(refusal({"--print-completion=tcsh"}),
              "--print-completion=tcsh: not known; give bash, zsh or fish");
}

TEST(CtlCall, ReadsAges) {
    using namespace std::chrono;
    EXPECT_EQ(*read_age("30d"), Duration{hours{720}});
    EXPECT_EQ(*read_age("12h"), Duration{hours{12}});
    EXPECT_EQ(*read_age("5m"), Duration{minutes{5}});
    EXPECT_EQ(*read_age("0s"), Duration{});
    for (const char* wrong : {"", "d", "30", "-1d", "3.5d", "30 d", "30days", "1y", " 1d", "+1d"})
        EXPECT_FALSE(read_age(wrong)) << wrong;
    // Above, nanoseconds would overflow.
    EXPECT_TRUE(read_age("36600d"));
    for (const char* wrong : {"36601d", "999999999999999999d", "99999999999999999999d"})
        EXPECT_FALSE(read_age(wrong)) << wrong;
}

}  // namespace
}  // namespace ddprun::launcher
