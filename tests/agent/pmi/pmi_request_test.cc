// The lines of PMI-1 as MPICH writes them, and those that are none.
#include "agent/pmi/pmi_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ddprun::agent::pmi;
using testing::HasSubstr;

TEST(PmiRequest, HasACommandAndWords) {
    const auto put = Request::parse("cmd=put kvsname=kvs_0_1 key=P0-bc value=a#b=c$ ");
    ASSERT_TRUE(put);
    EXPECT_EQ(put->command(), "put");
    EXPECT_EQ(put->word("value"), "a#b=c$");
    EXPECT_EQ(put->word("missing"), "");
    EXPECT_FALSE(put->has_more_lines());
    EXPECT_TRUE(Request::parse("mcmd=spawn")->has_more_lines());
}

TEST(PmiRequest, HasNumbers) {
    const auto abort = Request::parse("cmd=abort exitcode=-3 other=3x");
    EXPECT_EQ(abort->number("exitcode"), -3);
    EXPECT_EQ(abort->number("other"), std::nullopt);
    EXPECT_EQ(abort->number("missing"), std::nullopt);
}

TEST(PmiRequest, RefusesWhatIsNoPmi) {
    for (const char* line : {"", "    23cmd=fullinit;pmirank=0;", "hello", "=x cmd=init"})
        EXPECT_FALSE(Request::parse(line)) << line;
    EXPECT_THAT(Request::parse("\x1b[2J").error().sentence(), HasSubstr("\\x1b"));
}
