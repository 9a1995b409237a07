// Names, data and metadata that a file could not say, or would say wrongly.
#include "trainer/snapshot/format/savable.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using testing::HasSubstr;
using Views = std::vector<TensorView>;

void expect_refused(const Result<void>& done, const std::string& sentence) {
    ASSERT_FALSE(done) << sentence;
    EXPECT_EQ(done.error().code(), ErrorCode::usage);
    EXPECT_THAT(done.error().sentence(), HasSubstr(sentence));
}

TEST(Savable, RefusesNamesThatAFileCannotSay) {
    for (const char* name : {"a\xff", "a\xc3", "\xed\xa0\x80", "a\nb", "a\x01"})
        expect_refused(check_name(name), "control characters or bytes that are no UTF-8");
    expect_refused(check_name("a\xff"), "tensor \"a\\xff\" cannot be saved");
    expect_refused(check_name("__metadata__"), "which safetensors keeps for itself");
    for (const char* name : {"w[0:4]", "w[0:4, 8:16]", "[1:2]", "x[0][3:3]"})
        expect_refused(check_name(name), "which is that of a slice in a file");
}

TEST(Savable, TakesTheNamesOfModels) {
    for (const char* name : {"", "w", "layer.0.weight", "größe", "w[0]", "w[]", "w[:]", "w[0:4",
                             "w[0:4]x", "w[a:b]", "w[0:4,8:16]", "metadata", "a \"b\"", "a/b"})
        EXPECT_TRUE(check_name(name)) << name;
}

// The two mistakes have a sentence each.
TEST(Savable, RefusesDataThatDoNotFitAndNamesThatOccurTwice) {
    const std::vector<float> values(10);
    const auto view = tensor_view("w", {10}, std::span(values));
    EXPECT_TRUE(check_savable(Views{view}));
    expect_refused(check_savable(Views{view, view}),
                   "tensor \"w\" occurs twice; give each a name of its own");
    auto wrong = view;
    wrong.shape = {3, 4};
    expect_refused(check_savable(Views{wrong}),
                   "tensor \"w\" is F32 [3, 4], but has 40 bytes of data");
    wrong.shape = {std::uint64_t{1} << 62, 4};
    expect_refused(check_savable(Views{wrong}), "but has 40 bytes of data");
    // Slices of one tensor are no repetition, the same slice is, and so is nothing of it.
    auto upper = view, lower = view;
    upper.place = Place{{20}, {0}};
    lower.place = Place{{20}, {10}};
    EXPECT_TRUE(check_savable(Views{upper, lower}));
    expect_refused(check_savable(Views{upper, lower, upper}), "tensor \"w[0:10]\" occurs twice");
    lower.place->offset = {11};
    expect_refused(check_savable(Views{lower}),
                   "the slice [10] of tensor \"w\" at [11] does not lie in the whole [20]");
}

TEST(Savable, RefusesMetadataThatAreNoText) {
    EXPECT_TRUE(check_savable(Metadata{{"epoch", "3"}, {"text", "line\nline"}, {"ü", "€"}}));
    expect_refused(check_savable(Metadata{{"random", "\xff\xfe"}}),
                   "the metadata \"random\" cannot be saved");
    expect_refused(check_savable(Metadata{{"a\xff", ""}}), "the metadata \"a\\xff\"");
}

}  // namespace
}  // namespace ddprun::trainer
