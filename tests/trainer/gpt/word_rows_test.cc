// The rows of a batch by their words: all of them, once, in their order.
#include "examples/gpt/word_rows.h"

#include <gmock/gmock.h>

namespace example::gpt {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Words that no row has are left out, also the last one.
TEST(WordRows, HasTheRowsOfEachWordInTheirOrder) {
    const int tokens[] = {4, 1, 4, 0, 1, 4};
    const RowsByWord all = rows_by_word(tokens, 6);
    EXPECT_THAT(all.words, ElementsAre(0, 1, 4));
    EXPECT_THAT(all.begins, ElementsAre(0, 1, 3, 6));
    EXPECT_THAT(all.rows, ElementsAre(3, 1, 4, 0, 2, 5));
}

TEST(WordRows, TakesTheLastWordAndNone) {
    const int tokens[] = {5, 5};
    EXPECT_THAT(rows_by_word(tokens, 6).words, ElementsAre(5));
    EXPECT_THAT(rows_by_word({}, 6).words, IsEmpty());
    EXPECT_THAT(rows_by_word({}, 6).begins, ElementsAre(0));
}

}  // namespace
}  // namespace example::gpt
