// Slurm's folded lists of counts, as SLURM_STEP_TASKS_PER_NODE has them. Pure.
#include "slurm/count_list.h"

#include <gtest/gtest.h>

#include <string>

namespace ddprun::slurm {
namespace {

using Counts = std::vector<std::int64_t>;

// Each count stands for a node, so the order must stay. 4294967295 is the largest count that Slurm
// stores, and 1024 nodes are a large but real cluster.
TEST(CountList, Expands) {
    struct Row {
        const char* text;
        Counts counts;
    };
    for (const Row& row :
         {Row{"1", {1}}, Row{"1(x2)", {1, 1}}, Row{"72(x2),36", {72, 72, 36}},
          Row{"2(x3),1", {2, 2, 2, 1}}, Row{"1,2", {1, 2}}, Row{"8(x2),4,8(x2)", {8, 8, 4, 8, 8}},
          Row{"4(x1)", {4}}, Row{"0", {0}}, Row{"128(x1024)", Counts(1024, 128)},
          Row{"4294967295(x2)", {4294967295, 4294967295}}}) {
        auto counts = expand_count_list(row.text);
        ASSERT_TRUE(counts) << row.text << ": " << counts.error();
        EXPECT_EQ(*counts, row.counts) << row.text;
    }
}

// The message points at the character, because such texts are long on large jobs. The rows with
// 4294967296 and 4294967295 repetitions are short texts that would take gigabytes: they fail before
// any memory is allocated.
TEST(CountList, NamesThePlaceOfAMistake) {
    struct Row {
        const char* text;
        const char* sentence;
    };
    for (const Row& row :
         {Row{"", "not a count at character 1"}, Row{"a(x2)", "not a count at character 1"},
          Row{"4,,2", "not a count at character 3"}, Row{"4,", "not a count at character 3"},
          Row{"4x2", "not a count at character 2"}, Row{"4(x2)3", "not a count at character 6"},
          Row{"-1", "not a count at character 1"}, Row{"(x2)", "not a count at character 1"},
          Row{"4(x2", "not a repetition like (x2) at character 2"},
          Row{"4(x0)", "not a repetition like (x2) at character 2"},
          Row{"4(x-1)", "not a repetition like (x2) at character 2"},
          Row{"1(x4294967296)", "not a repetition like (x2) at character 2"},
          Row{"1(x4294967295)", "counts of more than 262144 nodes at character 2"},
          Row{"99999999999999999999", "not a count at character 1"}}) {
        auto counts = expand_count_list(row.text);
        ASSERT_FALSE(counts) << row.text;
        EXPECT_EQ(counts.error(), Error(ErrorCode::malformed, row.sentence)) << row.text;
    }
}

}  // namespace
}  // namespace ddprun::slurm
