// Tensors of a program's own, filled from a snapshot: all of them, or none with the reason.
#include "trainer/snapshot/load/load_into.h"

#include <gmock/gmock.h>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

using testing::HasSubstr;

struct Model {
    std::vector<float> w = std::vector<float>(6), b = std::vector<float>(2);
    std::int64_t count = 0;

    std::vector<Tensor> tensors() {
        return {tensor("w", {2, 3}, std::span(w)), tensor("b", {2}, std::span(b)),
                tensor("count", {}, std::span(&count, 1))};
    }
};

// A snapshot of a model with the numbers 1 to 6, 7 and 8, and the count 9.
class LoadInto : public testing::Test {
  protected:
    LoadInto() {
        Model saved{{1, 2, 3, 4, 5, 6}, {7, 8}, 9};
        auto folder = SnapshotFolder::open({}, folder_, 1, {}).value();
        EXPECT_TRUE(folder.save(5, views_of(saved.tensors()), {}));
        snapshot_ = SnapshotFolder::newest_in(folder_, {}).value();
    }

    // The tensors are refused with this sentence, and the model is as it was.
    void expect_refused(const std::vector<Tensor>& tensors, const std::string& sentence) {
        const auto done = load_into(snapshot_, tensors);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code(), ErrorCode::usage);
        EXPECT_THAT(done.error().sentence(), HasSubstr(sentence));
        EXPECT_EQ(model_.w, std::vector<float>(6));
        EXPECT_EQ(model_.b, std::vector<float>(2));
    }

    test::TemporaryFolder folder_;
    Snapshot snapshot_;
    Model model_;
};

TEST_F(LoadInto, FillsEveryTensor) {
    ASSERT_TRUE(load_into(snapshot_, model_.tensors()));
    EXPECT_THAT(model_.w, testing::ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(model_.b, testing::ElementsAre(7, 8));
    EXPECT_EQ(model_.count, 9);
}

// 2 × 3 numbers are as many bytes as 3 × 2, and mean another matrix.
TEST_F(LoadInto, RefusesAnotherShapeOfEqualSize) {
    auto tensors = model_.tensors();
    tensors[0].shape = {3, 2};
    expect_refused(tensors,
                   "tensor \"w\" is F32 [2, 3] in snapshot snapshot-000000000005-g0, and F32 "
                   "[3, 2] in this program");
}

TEST_F(LoadInto, RefusesAnotherTypeOfEqualSize) {
    auto tensors = model_.tensors();
    tensors[1].type = DataType::int32;
    expect_refused(tensors,
                   "tensor \"b\" is F32 [2] in snapshot snapshot-000000000005-g0, and I32");
}

// The tensor that fits stands before the one that does not, and is not filled either.
TEST_F(LoadInto, NamesATensorThatTheSnapshotLacks) {
    auto tensors = model_.tensors();
    tensors[2].name = "steps";
    expect_refused(tensors,
                   "has no tensor \"steps\", which is I64 [] in this program; it has 3 tensors: "
                   "\"b\", \"count\", \"w\"");
}

TEST_F(LoadInto, RefusesMemoryThatDoesNotFitItsShape) {
    auto tensors = model_.tensors();
    tensors[0].data = tensors[0].data.first(8);
    expect_refused(tensors, "tensor \"w\" is F32 [2, 3], but this program gives it 8 bytes");
}

// A program for another model lists fewer tensors. It may say that it wants only these.
TEST_F(LoadInto, LeavesOutTheRestOnlyWhenAsked) {
    auto tensors = model_.tensors();
    tensors.pop_back();
    expect_refused(tensors, "has 1 tensor: \"count\", which this program does not have");
    ASSERT_TRUE(load_into(snapshot_, tensors, {.rest = Rest::ignored}));
    EXPECT_THAT(model_.b, testing::ElementsAre(7, 8));
    EXPECT_EQ(model_.count, 0);
}

// Files that somebody else has put together: as many elements as the tensor has, but one is there
// twice and another not at all; or slices of two tensors under one name.
TEST_F(LoadInto, RefusesSlicesThatAreNotTheWhole) {
    const auto piece = [&](std::uint64_t offset, std::uint64_t count, std::uint64_t whole) {
        auto view = tensor_view("w", {count}, std::span<const float>(model_.w).first(count));
        view.place = Place{{whole}, {offset}};
        return view;
    };
    std::vector<float> to(6);
    const std::vector<Tensor> tensors{tensor("w", {6}, std::span(to))};
    snapshot_.content.tensors = {piece(0, 3, 6), piece(2, 1, 6), piece(4, 2, 6)};
    auto done = load_into(snapshot_, tensors);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::malformed);
    EXPECT_THAT(done.error().sentence(),
                HasSubstr("has the element [2] of tensor \"w\" F32 [6] 2 times, and not once"));
    snapshot_.content.tensors = {piece(0, 3, 6), piece(4, 2, 6)};
    EXPECT_THAT(load_into(snapshot_, tensors).error().sentence(),
                HasSubstr("has the element [3] of tensor \"w\" F32 [6] not at all"));
    snapshot_.content.tensors = {piece(0, 3, 6), piece(3, 3, 7)};
    done = load_into(snapshot_, tensors);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::malformed);
    EXPECT_THAT(done.error().sentence(), HasSubstr("has tensor \"w\" as F32 [6] and as F32 [7]"));
}

// The copy of a GPU, for example, may fail; the error is the caller's.
TEST_F(LoadInto, ReturnsTheErrorOfTheCopy) {
    const auto done = load_into(snapshot_, model_.tensors(),
                                {.copy = [](const Tensor& to, std::span<const std::byte>) {
                                    const Error full(ErrorCode::unavailable, to.name);
                                    return to.name == "w" ? Result<void>(full) : Result<void>();
                                }});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error(), Error(ErrorCode::unavailable, "w"));
}

}  // namespace
}  // namespace ddprun::trainer
