// How ranks see that they make the same steps.
#include "trainer/optimizer/step_numbers.h"

#include <gmock/gmock.h>

#include <limits>

namespace ddprun::trainer {
namespace {

using testing::HasSubstr;

// Empty: they agree.
std::string compared(const StepNumbers& first, const StepNumbers& other) {
    std::vector<double> all;
    for (const auto* rank : {&first, &first, &other})
        all.insert(all.end(), rank->words().begin(), rank->words().end());
    return step_disagreement(all).value_or("");
}

TEST(StepNumbers, AreComparedInTheFirstStepsAndNowAndThen) {
    StepNumbers numbers;
    std::vector<int> due;
    for (int step = 1; step <= 50; ++step) {
        numbers.add(step, 0.1f, 0);
        if (numbers.due()) due.push_back(step);
    }
    EXPECT_THAT(due, testing::ElementsAre(1, 2, 3, 16, 32, 48));
}

TEST(StepNumbers, SayInWhatTheyDiffer) {
    StepNumbers first, same, rate, clip, step;
    first.add(7, 0.1f, 0);
    same.add(7, 0.1f, 0);
    rate.add(7, 0.2f, 0);
    clip.add(7, 0.1f, 1.5);
    step.add(8, 0.1f, 0);
    EXPECT_EQ(compared(first, same), "");
    EXPECT_THAT(compared(first, rate),
                HasSubstr("rank 2 makes step 7 with the rate 0.2, and rank 0 with 0.1"));
    EXPECT_THAT(compared(first, clip),
                HasSubstr("in step 7 rank 2 clips gradients to a norm of 1.5, and rank 0 clips no "
                          "gradients"));
    EXPECT_THAT(compared(first, step),
                HasSubstr("rank 2 makes step 8 of its optimizer, and rank 0 step 7"));
}

// Equal now, and different once.
TEST(StepNumbers, RememberAllSteps) {
    StepNumbers first, other;
    first.add(1, 0.1f, 0);
    other.add(1, 0.3f, 0);
    for (int step = 2; step <= 16; ++step) {
        first.add(step, 0.1f, 0);
        other.add(step, 0.1f, 0);
    }
    EXPECT_THAT(compared(first, other),
                HasSubstr("rank 2 has made a step before step 16 with another rate"));
}

// A rate that is no number is a mistake of all ranks, which the losses show.
TEST(StepNumbers, AreEqualAlsoIfTheyAreNoNumbers) {
    StepNumbers first, other;
    first.add(1, std::numeric_limits<float>::quiet_NaN(), 0);
    other.add(1, std::numeric_limits<float>::quiet_NaN(), 0);
    EXPECT_EQ(compared(first, other), "");
}

}  // namespace
}  // namespace ddprun::trainer
