// The texts that are made from the option table: --help, the manual page, shell completion. Pure. A
// new option is a row of the table, and these tests see that no text forgets it.
#include "launcher/options/option_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "launcher/options/completion.h"
#include "launcher/options/manual_sections.h"
#include "launcher/options/option_table.h"

namespace ddprun::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string dashed(const OptionRow& row) { return "--" + std::string(row.name); }

// A text that lacks an option hides it from the user.
TEST(OptionText, NamesEveryOption) {
    for (const OptionRow& row : option_table()) {
        EXPECT_THAT(help_text(HelpLength::all),
                    HasSubstr("  " + (row.letter ? std::string("-") + row.letter + ", " : "") +
                              dashed(row)));
        for (const char* shell : {"bash", "zsh"})
            EXPECT_THAT(completion(shell, "ddprun"), HasSubstr(dashed(row))) << shell;
        EXPECT_THAT(completion("fish", "ddprun"), HasSubstr("-l " + std::string(row.name) + " "));
        EXPECT_THAT(completion("tcsh", "ddprun"), HasSubstr(std::string(row.name)));
    }
}

// No line is wider than a terminal of 100 columns, and options stand in groups.
TEST(OptionText, HelpIsReadable) {
    std::istringstream lines(help_text(HelpLength::all));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
    for (const char* title : {"Nodes and workers:", "Meeting:", "When something fails:", "Output:"})
        EXPECT_THAT(help_text(HelpLength::all), HasSubstr(title));
}

// A user who comes from torchrun must see where a default is another one, and why. Only options of
// torchrun's can differ from it.
TEST(OptionText, HelpNamesTheDefaultsThatDiffer) {
    EXPECT_THAT(help_text(HelpLength::all), HasSubstr("torchrun's is 1, which"));
    for (const OptionRow& row : option_table())
        EXPECT_TRUE(row.differs.empty() || row.torchrun) << row.name;
}

// Whether a help shows the option: as "  --name", followed by its value or the end of the word.
bool shows(const std::string& text, const OptionRow& row) {
    const std::string line = "\n  " + dashed(row);
    for (const char* end : {"=", "[", "\n", " "})
        if (text.find(line + end) != std::string::npos) return true;
    return false;
}

// -h fits a screen: twelve options, a line each, three examples, and where more is.
TEST(OptionText, TheBriefHelpFitsAScreen) {
    const std::string text = brief_help();
    int count = 0;
    for (const OptionRow& row : option_table()) {
        count += !row.brief.empty();
        EXPECT_EQ(shows(text, row), !row.brief.empty()) << row.name;
    }
    EXPECT_EQ(count, 12);
    EXPECT_LE(std::ranges::count(text, '\n'), 45);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
    for (const char* more : {"--help ", "--help-all ", "--print-man"})
        EXPECT_THAT(text, HasSubstr(more));
}

// --help has the same options in full, examples and exit codes; the rest is in the manual page.
TEST(OptionText, TheShortHelpHasWhatPeopleUse) {
    const std::string text = help_text(HelpLength::frequent);
    for (const OptionRow& row : option_table())
        EXPECT_EQ(shows(text, row), !row.brief.empty()) << row.name;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_THAT(text, HasSubstr("--help-all"));
    for (const std::string& each : {text, help_text(HelpLength::all)}) {
        EXPECT_THAT(each, HasSubstr("\n  75                    stopped by a time limit"));
        EXPECT_THAT(each, HasSubstr("\n  124                   the job hung"));
    }
    EXPECT_EQ(manual_sections().front().rows.size(), 5u);
    for (const char* word : {".ddprun/", "LOG_DIR/", "DDPRUN_STOP_FILE", "SIGUSR1", "SIGINT"}) {
        EXPECT_THAT(text, Not(HasSubstr(std::string("\n  ") + word)));
        EXPECT_THAT(help_text(HelpLength::all), HasSubstr(std::string("\n  ") + word));
    }
    for (const ManualSection& section : manual_sections())
        EXPECT_THAT(man_page("1"), HasSubstr("\n.SH " + std::string(section.heading) + "\n.TP\n"));
}

// roff prints a plain dash as a hyphen. An option that is copied from such a page does not work.
TEST(OptionText, ManPageIsRoff) {
    const std::string page = man_page("1.2.3");
    EXPECT_THAT(page, HasSubstr(".TH DDPRUN 1"));
    EXPECT_THAT(page, HasSubstr("\\-\\-nproc\\-per\\-node"));
    EXPECT_THAT(page, HasSubstr(".SH EXIT STATUS"));
    EXPECT_THAT(page, Not(HasSubstr("--nproc")));
}

// A link named torchrun needs a completion of that name. A value with fixed words offers them, and
// one that is a path offers files (-F).
TEST(OptionText, CompletionIsForTheNameCalled) {
    EXPECT_THAT(completion("bash", "torchrun"), HasSubstr("-F _torchrun torchrun"));
    EXPECT_THAT(completion("fish", "ddprun"), HasSubstr("-l nproc-per-node -x -a 'auto gpu cpu'"));
    EXPECT_THAT(completion("fish", "ddprun"), HasSubstr("-l log-dir -r -F"));
}

// The value of --dry-run may be left out, so it stands behind a = sign only. A completion must not
// offer it as the next word: that would be the program.
TEST(OptionText, AValueThatMayBeLeftOut) {
    EXPECT_THAT(help_text(HelpLength::all), HasSubstr("  --dry-run[=text|json]\n"));
    EXPECT_THAT(completion("fish", "ddprun"), HasSubstr("-l dry-run -a 'text json'"));
    EXPECT_THAT(completion("bash", "ddprun"),
                HasSubstr("&& $before != --dry-run && $before != --check "
                          "&& $before != --rehearse && $before != --print-sbatch ]]"));
    EXPECT_THAT(completion("zsh", "ddprun"), HasSubstr("'--dry-run=-["));
    EXPECT_THAT(completion("zsh", "ddprun"), HasSubstr("::text|json:(text json)'"));
    EXPECT_THAT(completion("tcsh", "ddprun"), testing::Not(HasSubstr("n/--dry-run/")));
}

}  // namespace
}  // namespace ddprun::launcher
