// Slurm's host lists: expanded to names, folded again, and rejected with the place of the mistake.
// Pure. The golden file is cross-checked with Slurm's own parser by cross_check.sh.
#include "slurm/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

namespace ddprun::slurm {
namespace {

using Names = std::vector<std::string>;

std::string joined(const Names& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : " ") + name;
    return text;
}

// Each line of the file has an expression, a tab, and the names or the sentence of the error. What
// expands must also survive a fold and another expansion.
TEST(Hostlist, ExpandsTheGoldenFile) {
    std::ifstream file(DDPRUN_TEST_DATA "/hostlists.txt");
    int checked = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        std::string expression = line.substr(0, line.find('\t')),
                    expected = line.substr(line.find('\t') + 1);
        auto names = expand_hostlist(expression);
        EXPECT_EQ(names ? joined(*names) : "!" + names.error().sentence(), expected) << expression;
        if (names) {
            EXPECT_EQ(*expand_hostlist(fold_hostlist(*names)), *names) << fold_hostlist(*names);
        }
        ++checked;
    }
    EXPECT_GT(checked, 50);  // a file that is not found must not pass
}

// What cannot stand in a line of the golden file: separators that are white space, an empty list,
// and a zero byte.
TEST(Hostlist, SeparatorsAndEmptiness) {
    EXPECT_EQ(*expand_hostlist("a,b\nc\td"), (Names{"a", "b", "c", "d"}));
    EXPECT_EQ(expand_hostlist("").error(), Error(ErrorCode::malformed, "the host list is empty"));
    EXPECT_EQ(expand_hostlist(std::string_view("a\0b", 3)).error().sentence(),
              "not a character of a host name at character 2");
}

// A short text must not take much memory, so the number of hosts and of bytes is limited. Slurm's
// own largest range (65536 hosts) is allowed, and four of them.
TEST(Hostlist, IsBounded) {
    auto largest = expand_hostlist("n[0-65535]");
    ASSERT_TRUE(largest);
    EXPECT_EQ(largest->size(), 65536u);
    EXPECT_EQ(largest->back(), "n65535");
    EXPECT_EQ(expand_hostlist("n[0-65535,0-65535],m[0-65535,0-65535]")->size(), kMostHosts);
    EXPECT_EQ(expand_hostlist("n[0-65535,0-65535],m[0-65535,0-65535],one").error().sentence(),
              "more than 262144 hosts at character 39");
    EXPECT_EQ(expand_hostlist("n[0-65535,0-65535,0-65535,0-65535,1]").error().sentence(),
              "more than 262144 hosts at character 35");
    // The number of hosts is allowed here, but each name repeats 300 characters.
    EXPECT_EQ(expand_hostlist(std::string(300, 'n') + "[0-65535]").error().sentence(),
              "a host name of more than 255 characters at character 1");
    // 17 brackets, and 16 are the limit.
    EXPECT_FALSE(expand_hostlist("n[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]"));
}

// Log lines show folded lists. Neighbours share a bracket; the order, duplicates and zero padding
// stay, because the ranks follow this order. The number with 20 digits does not fit into 64 bits
// and stays text.
TEST(Hostlist, Folds) {
    EXPECT_EQ(fold_hostlist({"n1", "n2", "n3", "m7"}), "n[1-3],m7");
    EXPECT_EQ(fold_hostlist({"gpu01", "gpu02", "gpu04", "gpu10"}), "gpu[01-02,04,10]");
    EXPECT_EQ(fold_hostlist({"n8", "n9", "n10"}), "n[8-10]");
    EXPECT_EQ(fold_hostlist({"n08", "n9"}), "n[08,9]");
    EXPECT_EQ(fold_hostlist({"n2", "n1", "n1"}), "n[2,1,1]");
    EXPECT_EQ(fold_hostlist({"n1-ib", "n2-ib", "n3"}), "n[1-2]-ib,n3");
    EXPECT_EQ(fold_hostlist({"login", "login"}), "login,login");
    EXPECT_EQ(fold_hostlist({}), "");
    EXPECT_EQ(fold_hostlist({"n99999999999999999999"}), "n99999999999999999999");
}

// Random text from the characters of the grammar ends in names or in an error, and never in a
// crash. What expands survives a fold. The characters are chosen so that many texts are valid; the
// last line checks that.
TEST(Hostlist, SurvivesRandomText) {
    std::mt19937 random(1);
    const std::string characters = "n0019[]-,,x [";
    int expanded = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::string text;
        for (auto length = random() % 14; text.size() < length;)
            text += characters[random() % characters.size()];
        auto names = expand_hostlist(text);
        if (!names || names->size() > 200) continue;  // keeps the test fast
        ++expanded;
        ASSERT_EQ(*expand_hostlist(fold_hostlist(*names)), *names) << text;
    }
    EXPECT_GT(expanded, 1000);
}

}  // namespace
}  // namespace ddprun::slurm
