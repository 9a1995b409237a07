// What a rank sees of a rank that makes another call. The messages are played.
#include "trainer/group/compared_calls.h"

#include <gmock/gmock.h>

#include <cstring>
#include <utility>

namespace ddprun::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(ComparedCalls, NamesTheFirstRankThatDiffers) {
    std::vector<float> values(4);
    const auto mine = Operation::all_reduce(buffer_of(std::span(values)));
    const auto shorter = Operation::all_reduce(buffer_of(std::span(values).first(3)));
    std::vector<Opinion> all(3, opinion_of(mine));
    EXPECT_TRUE(compare_calls(mine, all, {}));
    all[1] = all[2] = opinion_of(shorter);
    const auto done = compare_calls(mine, all, {0, 4, 8});
    EXPECT_EQ(done.error().code(), ErrorCode::refused);
    EXPECT_THAT(done.error().sentence(), HasSubstr("rank 1 (rank 4 of the job) calls all_reduce"));
    EXPECT_THAT(done.error().sentence(), Not(HasSubstr("Join")));
}

// A rank that has run out of samples goes on to the validation, and the others to their next step.
TEST(ComparedCalls, NamesWhatHelpsWhereRanksHaveUnequalNumbersOfSteps) {
    std::vector<float> values(4);
    const auto mean = opinion_of(Operation::all_reduce(buffer_of(std::span(values))));
    const auto step =
        opinion_of(Operation::all_reduce(buffer_of(std::span(values))).of("gradients"));
    for (const auto& [mine, theirs] : {std::pair(mean, step), std::pair(step, mean)})
        EXPECT_THAT(disagreement(mine, theirs, "rank 1"),
                    HasSubstr("unequal numbers of steps, use Join (gradients/join.h)"));
}

// The other end of an exchange, which says that it sends so many float32.
struct Other {
    std::uint64_t count = 0;
    std::vector<int> tags;

    Move move() {
        return [this](int tag, std::optional<Buffer>, std::optional<Buffer> in) {
            tags.push_back(tag);
            const std::uint64_t header[2] = {count, static_cast<std::uint64_t>(DataType::float32)};
            if (tag == 1 && in) std::memcpy(in->data, header, sizeof header);
            return Result<void>();
        };
    }
};

TEST(ComparedCalls, TakesNoDataBehindAnotherHeader) {
    std::vector<float> values(4);
    const auto receive = Operation::receive(buffer_of(std::span(values)), 1);
    Other good{4, {}};
    EXPECT_TRUE(call_pairwise(receive, {}, good.move()));
    EXPECT_THAT(good.tags, ElementsAre(1, 2));
    Other more{5, {}};
    EXPECT_EQ(call_pairwise(receive, {}, more.move()).error(),
              Error(ErrorCode::refused, "rank 1 sends 5 F32, this rank expects 4 F32"));
    EXPECT_THAT(more.tags, ElementsAre(1));
}

}  // namespace
}  // namespace ddprun::trainer
