#include "launcher/options/option_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "launcher/options/option_table.h"

namespace ddprun::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string dashed(const OptionRow& row) { return "--" + std::string(row.name); }

// Every option stands in every text that is made from the table.
TEST(OptionText, NamesEveryOption) {
    for (const OptionRow& row : option_table()) {
        EXPECT_THAT(help_text(),
                    HasSubstr("  " + (row.letter ? std::string("-") + row.letter + ", " : "") +
                              dashed(row)));
        for (const char* shell : {"bash", "zsh"})
            EXPECT_THAT(completion(shell, "ddprun"), HasSubstr(dashed(row))) << shell;
        EXPECT_THAT(completion("fish", "ddprun"), HasSubstr("-l " + std::string(row.name) + " "));
        EXPECT_THAT(completion("tcsh", "ddprun"), HasSubstr(std::string(row.name)));
    }
}

TEST(OptionText, HelpIsReadable) {
    std::istringstream lines(help_text());
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
    for (const char* title : {"Nodes and workers:", "Meeting:", "When something fails:", "Output:"})
        EXPECT_THAT(help_text(), HasSubstr(title));
}

// A default that is not torchrun's is named with the reason.
TEST(OptionText, HelpNamesTheDefaultsThatDiffer) {
    EXPECT_THAT(help_text(), HasSubstr("torchrun's is 1, which"));
    for (const OptionRow& row : option_table())
        EXPECT_TRUE(row.differs.empty() || row.torchrun) << row.name;
}

// roff would take a dash for a hyphen, and a leading dot or quote for a request.
TEST(OptionText, ManPageIsRoff) {
    const std::string page = man_page("1.2.3");
    EXPECT_THAT(page, HasSubstr(".TH DDPRUN 1"));
    EXPECT_THAT(page, HasSubstr("\\-\\-nproc\\-per\\-node"));
    EXPECT_THAT(page, HasSubstr(".SH EXIT STATUS"));
    EXPECT_THAT(page, Not(HasSubstr("--nproc")));
}

TEST(OptionText, CompletionIsForTheNameCalled) {
    EXPECT_THAT(completion("bash", "torchrun"), HasSubstr("-F _torchrun torchrun"));
    EXPECT_THAT(completion("fish", "ddprun"), HasSubstr("-l nproc-per-node -x -a 'auto gpu cpu'"));
    EXPECT_THAT(completion("fish", "ddprun"), HasSubstr("-l log-dir -r -F"));
}

// A value that may be left out stands behind a = sign only.
TEST(OptionText, AValueThatMayBeLeftOut) {
    EXPECT_THAT(help_text(), HasSubstr("  --dry-run[=text|json]\n"));
    EXPECT_THAT(completion("fish", "ddprun"), HasSubstr("-l dry-run -a 'text json'"));
    EXPECT_THAT(completion("bash", "ddprun"),
                HasSubstr("&& $before != --dry-run && $before != --check ]]"));
    EXPECT_THAT(completion("zsh", "ddprun"), HasSubstr("'--dry-run=-["));
    EXPECT_THAT(completion("zsh", "ddprun"), HasSubstr("::text|json:(text json)'"));
    EXPECT_THAT(completion("tcsh", "ddprun"), testing::Not(HasSubstr("n/--dry-run/")));
}

}  // namespace
}  // namespace ddprun::launcher
