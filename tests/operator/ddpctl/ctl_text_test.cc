// Help, manual page and completion of ddpctl: no text forgets a command or an option.
#include "operator/ddpctl/ctl_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace ddprun::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CtlText, NamesEveryCommandAndOption) {
    for (const Command& command : commands()) {
        const std::string name(command.name);
        EXPECT_THAT(ctl_help(), HasSubstr("\n  " + name));
        EXPECT_THAT(ctl_man_page("1"), HasSubstr("\n.SS " + name));
        EXPECT_THAT(ctl_completion("bash"), HasSubstr(name + ") words='"));
        EXPECT_THAT(ctl_completion("zsh"), HasSubstr("'" + name + ":"));
        EXPECT_THAT(ctl_completion("fish"), HasSubstr(" -a " + name + " -d "));
        for (const OptionRow& row : command.rows) {
            const std::string option(row.name);
            EXPECT_THAT(command_help(command), testing::ContainsRegex("\n  (-., )?--" + option));
            EXPECT_THAT(ctl_completion("bash"), HasSubstr("--" + option));
            EXPECT_THAT(ctl_completion("zsh"), HasSubstr("'--" + option));
            EXPECT_THAT(ctl_completion("fish"), HasSubstr("_from " + name + "' -l " + option));
        }
    }
    for (const OptionRow& row : rows_of_all())
        EXPECT_THAT(ctl_help(), HasSubstr("--" + std::string(row.name)));
}

TEST(CtlText, IsReadable) {
    std::string all = ctl_help();
    for (const Command& command : commands()) all += command_help(command);
    std::istringstream lines(all);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(CtlText, ManPageIsRoff) {
    EXPECT_THAT(ctl_man_page("1.2.3"), HasSubstr(".TH DDPCTL 1 \"\" \"ddprun 1.2.3\""));
    EXPECT_THAT(ctl_man_page("1"), HasSubstr("\n.SH EXIT STATUS\n"));
    EXPECT_THAT(ctl_man_page("1"), Not(HasSubstr("--ledger")));
}

TEST(CtlText, AnOptionAsksForIt) {
    const Release release{"1.2", "0123456789ab", "Release"};
    EXPECT_EQ(ctl_printed_text(*read_call({"--version"}), release),
              "ddpctl 1.2, commit 0123456789ab, build Release\n");
    EXPECT_EQ(ctl_printed_text(*read_call({"--help"}), release), ctl_help());
    EXPECT_EQ(ctl_printed_text(*read_call({"jobs", "--help"}), release),
              command_help(*find_command("jobs")));
    EXPECT_EQ(ctl_printed_text(*read_call({"jobs"}), release), std::nullopt);
}

}  // namespace
}  // namespace ddprun::launcher
