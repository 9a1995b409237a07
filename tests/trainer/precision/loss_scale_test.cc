// When the scale of a loss grows, when it shrinks, and what a snapshot keeps of it. Pure.
#include "trainer/precision/loss_scale.h"

#include <gmock/gmock.h>

#include <limits>

namespace ddprun::trainer {
namespace {

using testing::HasSubstr;

// From 8, doubled after three good steps in a row.
LossScaleOptions small() {
    LossScaleOptions options;
    options.initial = 8;
    options.interval = 3;
    options.least = 1;
    return options;
}

void update(LossScale& scale, std::initializer_list<bool> steps) {
    for (bool finite : steps) EXPECT_TRUE(scale.update(finite));
}

// These numbers are those of torch.amp.GradScaler with the same options and steps.
TEST(LossScale, GrowsAfterGoodStepsAndShrinksAfterABadOne) {
    auto scale = LossScale::make(small()).value();
    update(scale, {true, true});
    EXPECT_EQ(scale.value(), 8);
    update(scale, {true});
    EXPECT_EQ(scale.value(), 16);
    // A bad step begins the counting anew.
    update(scale, {true, true, false});
    EXPECT_EQ(scale.value(), 8);
    update(scale, {true, true});
    EXPECT_EQ(scale.value(), 8);
    update(scale, {true});
    EXPECT_EQ(scale.value(), 16);
    EXPECT_EQ(scale.skipped(), 1);
}

// A loss that is not finite itself would be skipped for ever.
TEST(LossScale, DoesNotFallBelowTheLeast) {
    auto scale = LossScale::make(small()).value();
    update(scale, {false, false, false});
    EXPECT_EQ(scale.value(), 1);
    const auto done = scale.update(false);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::malformed);
    EXPECT_THAT(
        done.error().sentence(),
        HasSubstr("not finite with a loss scale of 1, and the least is 1 (4 steps skipped)"));
    EXPECT_EQ(scale.value(), 1);
}

// A scale that is no float would make every loss infinite.
TEST(LossScale, StaysAFloat) {
    auto options = small();
    options.initial = std::numeric_limits<float>::max();
    options.interval = 1;
    auto scale = LossScale::make(options).value();
    update(scale, {true});
    EXPECT_EQ(scale.value(), options.initial);
}

// A resumed training doubles at the same step as one that went on.
TEST(LossScale, GoesOnFromASnapshot) {
    auto scale = LossScale::make(small()).value();
    update(scale, {false, true, true});
    auto resumed = LossScale::make(small()).value();
    ASSERT_TRUE(resumed.resume(scale.words()));
    EXPECT_EQ(resumed.value(), 4);
    EXPECT_EQ(resumed.skipped(), 1);
    update(resumed, {true});
    EXPECT_EQ(resumed.value(), 8);
}

TEST(LossScale, RefusesASnapshotWithoutIt) {
    auto scale = LossScale::make(small()).value();
    EXPECT_EQ(scale.resume({}).error().code(), ErrorCode::not_found);
    for (const char* wrong : {"0", "-1", "nan", "inf", "x"}) {
        auto words = scale.words();
        words["loss_scale"] = wrong;
        EXPECT_EQ(scale.resume(words).error().code(), ErrorCode::malformed) << wrong;
    }
    EXPECT_EQ(scale.value(), 8);
}

// Each option that would never grow, never shrink or never work is refused by its name.
TEST(LossScale, RefusesWrongOptions) {
    const auto refused = [](auto change) {
        LossScaleOptions options;
        change(options);
        auto made = LossScale::make(options);
        return made ? std::string("none") : made.error().sentence();
    };
    EXPECT_THAT(refused([](auto& o) { o.initial = 0; }),
                HasSubstr("initial value is 0; it must be above 0"));
    EXPECT_THAT(refused([](auto& o) { o.growth = 0.5; }), HasSubstr("growth is 0.5"));
    EXPECT_THAT(refused([](auto& o) { o.backoff = 1; }), HasSubstr("backoff is 1"));
    EXPECT_THAT(refused([](auto& o) { o.interval = 0; }), HasSubstr("interval is 0"));
    EXPECT_THAT(refused([](auto& o) { o.least = 1e9; }), HasSubstr("least value is 1e+09"));
    EXPECT_THAT(refused([](auto& o) { o.initial = std::nan(""); }), HasSubstr("initial value is"));
}

}  // namespace
}  // namespace ddprun::trainer
