// Every option of torchrun in every spelling that its parser takes, as recorded by
// tests/differential/spellings.py from torch 1.13 to the newest.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "launcher/options/command_words.h"
#include "launcher/options/option_table.h"

using namespace ddprun;
using namespace ddprun::launcher;

namespace {

struct Spelling {
    std::string text;
    std::string newest;  // what the newest version that knows it takes it for; ?: several
};

int order_of(const std::string& version) {
    int major = 0, minor = 0;
    char dot = 0;
    std::istringstream(version) >> major >> dot >> minor;
    return major * 1000 + minor;
}

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

// The one option that these words give, with its value; or why they are refused.
std::string given(const std::vector<std::string>& words) {
    const auto split = split_words(words);
    if (!split) return "refused";
    if (split->options.size() != 1) return "other than one option";
    const GivenOption& option = split->options.front();
    if (!only_prints(*option.row) && split->the_rest != std::vector<std::string>{"script.py"})
        return "another program";
    return "--" + std::string(option.row->name) + " " + option.value;
}

// With a value apart and behind =, behind a letter at once, or without one.
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
    ASSERT_GT(all.size(), 400U);
    for (const Spelling& spelling : all) {
        if (spelling.newest == "?") continue;
        const OptionRow& row = option_row(spelling.newest.substr(2));
        const std::string value = row.placeholder.empty() ? "1" : "x";
        for (const std::string& answer : in_every_form(spelling.text, row))
            EXPECT_EQ(answer, spelling.newest + " " + value) << spelling.text;
    }
}

// What could be several options there is refused, or taken for one of those that it begins.
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
