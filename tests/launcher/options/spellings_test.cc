// Every option of torchrun in every spelling that its parser takes, recorded by
// tests/differential/spellings.py from torch 1.13 to the newest. ddprun must read each as torchrun
// does, so that a script needs no change.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/command_line/command_line.h"
#include "launcher/options/option_table.h"

using namespace ddprun;
using namespace ddprun::launcher;

namespace {

struct Spelling {
    std::string text;
    std::string newest;  // what the newest version that knows it takes it for; ?: several
};

// "2.10" is newer than "2.9", so versions compare as numbers.
int order_of(const std::string& version) {
    int major = 0, minor = 0;
    char dot = 0;
    std::istringstream(version) >> major >> dot >> minor;
    return major * 1000 + minor;
}

// A line of the file is a spelling, the option that it means, and the versions of which this is
// true. Where versions differ, the newest one counts.
std::vector<Spelling> recorded() {
    std::ifstream file(DDPRUN_TEST_DATA "/torchrun/spellings.txt");
    std::map<std::string, std::map<int, std::string>> answers;  // by spelling and version
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string spelling, option, version;
        words >> spelling >> option;
        while (words >> version) answers[spelling][order_of(version)] = option;
    }
    std::vector<Spelling> all;
    for (const auto& [text, by_version] : answers)
        all.push_back({text, by_version.rbegin()->second});
    return all;
}

// The one option that these words give, with its value; or why there is none.
std::string given(const std::vector<std::string>& words) {
    const auto split = split_words(words, job_grammar());
    if (!split) return "refused";
    if (split->options.size() != 1) return "other than one option";
    const GivenOption& option = split->options.front();
    if (!only_prints(*option.row) && split->the_rest != std::vector<std::string>{"script.py"})
        return "another program";
    return "--" + std::string(option.row->name) + " " + option.value;
}

// The value as the next word, behind =, and attached to a letter; a flag has none.
std::vector<std::string> in_every_form(const std::string& spelling, const OptionRow& row) {
    if (row.placeholder.empty()) return {given({spelling, "script.py"})};
    std::vector<std::string> answers{given({spelling + "=x", "script.py"})};
    if (row.implied.empty()) answers.push_back(given({spelling, "x", "script.py"}));
    if (!spelling.starts_with("--")) answers.push_back(given({spelling + "x", "script.py"}));
    return answers;
}

}  // namespace

TEST(Spellings, AreTakenAsTorchrunTakesThem) {
    const std::vector<Spelling> all = recorded();
    // A file that is missing or cut must not pass as a success.
    ASSERT_GT(all.size(), 400U);
    for (const Spelling& spelling : all) {
        if (spelling.newest == "?") continue;
        const OptionRow& row = option_row(spelling.newest.substr(2));
        const std::string value = row.placeholder.empty() ? "1" : "x";
        for (const std::string& answer : in_every_form(spelling.text, row))
            EXPECT_EQ(answer, spelling.newest + " " + value) << spelling.text;
    }
}

// An abbreviation that fits several of torchrun's options is an error there. Here it may be refused
// as well, or mean one of the options that begin so. It must not mean another one.
TEST(Spellings, WhatIsAmbiguousThereIsNoOtherOption) {
    for (const Spelling& spelling : recorded()) {
        if (spelling.newest != "?") continue;
        const std::string answer = given({spelling.text + "=x", "script.py"});
        std::string beginning = spelling.text;
        for (std::size_t i = 2; i < beginning.size(); ++i)
            if (beginning[i] == '_') beginning[i] = '-';
        EXPECT_TRUE(answer == "refused" || answer.starts_with(beginning))
            << spelling.text << ": " << answer;
    }
}

// An option of torchrun's that was added here later is missing in the file until it is recorded
// anew.
TEST(Spellings, OfEveryOptionOfTorchrunAreRecorded) {
    std::set<std::string> known;
    for (const Spelling& spelling : recorded()) known.insert(spelling.text);
    for (const OptionRow& row : option_table()) {
        // --exit-barrier-timeout is one of torchrun's development, in no version yet.
        if (!row.torchrun || row.name == "exit-barrier-timeout") continue;
        EXPECT_TRUE(known.contains("--" + std::string(row.name))) << row.name;
        if (row.letter != 0) {
            EXPECT_TRUE(known.contains(std::string("-") + row.letter)) << row.letter;
        }
    }
}
