#include "base/template_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ddprun;

// As Python's string.Template does with safe_substitute.
TEST(TemplateText, FillsInWhatIsKnown) {
    const TemplateValues values = prefix_values("actor", 1, 9, "n3");
    EXPECT_EQ(fill_template("${hostname}:${rank} $role_name${local_rank}|", values, true),
              "n3:9 actor1|");
    EXPECT_EQ(fill_template("${other} $ranks ${rank ${} $ 5$ $-", values, true),
              "${other} $ranks ${rank ${} $ 5$ $-");
    EXPECT_EQ(fill_template("$$rank $$${rank}", values, true), "$rank $9");
    EXPECT_EQ(fill_template("$$rank", values, false), "$$rank");
    EXPECT_EQ(fill_template("", values, true), "");
}

TEST(TemplateText, NamesWhatIsNotKnown) {
    const TemplateValues values = prefix_values("", 0, 0, "");
    EXPECT_TRUE(unknown_names("[${rank}] $$pid $ ${", values).empty());
    EXPECT_THAT(unknown_names("${pid} $pid ${rank} $host", values),
                testing::ElementsAre("pid", "host"));
}
