// Templates as --log-line-prefix-template and the workers' arguments use them. The rules are those
// of Python's string.Template, because users bring their templates from torchrun. Pure.
#include "base/template_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ddprun;

// The expected texts are what Python's string.Template.safe_substitute() gives. Text that only
// looks like a reference stays as it is: it may be shell code that the worker itself expands.
TEST(TemplateText, FillsInWhatIsKnown) {
    const TemplateValues values = prefix_values("actor", 1, 9, "n3");
    EXPECT_EQ(fill_template("${hostname}:${rank} $role_name${local_rank}|", values, true),
              "n3:9 actor1|");
    // Unknown names, a longer name that begins with a known one, a brace that is not closed, no
    // name, and a name that begins with a digit: nothing here is a reference.
    EXPECT_EQ(fill_template("${other} $ranks ${rank ${} $ 5$ $-", values, true),
              "${other} $ranks ${rank ${} $ 5$ $-");
    EXPECT_EQ(fill_template("$$rank $$${rank}", values, true), "$rank $9");
    // torchrun turns `$$` into `$`, which breaks a shell command that uses its process id. ddprun
    // does so only if asked.
    EXPECT_EQ(fill_template("$$rank", values, false), "$$rank");
    EXPECT_EQ(fill_template("", values, true), "");
}

// ddprun warns about names that it cannot fill in. It must not warn about plain dollar signs, and
// it names each unknown name once.
TEST(TemplateText, NamesWhatIsNotKnown) {
    const TemplateValues values = prefix_values("", 0, 0, "");
    EXPECT_TRUE(unknown_names("[${rank}] $$pid $ ${", values).empty());
    EXPECT_THAT(unknown_names("${pid} $pid ${rank} $host", values),
                testing::ElementsAre("pid", "host"));
}
