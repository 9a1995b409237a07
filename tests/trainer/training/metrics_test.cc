// Means, early stopping, and the figures of an epoch. Pure.
#include "trainer/training/metrics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace ddprun::trainer {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Ten samples on one rank and three on another: the result is the mean of thirteen, not the mean of
// two means.
TEST(Metrics, MeansAreExactWhenBatchesDiffer) {
    WeightedMean one, other;
    EXPECT_FALSE(one.mean());
    one.add(2, 10);
    other.add(15, 3);
    one.merge(other);
    EXPECT_EQ(one.mean(), 65.0 / 13.0);
}

// The figure must fall by 0.1 below the best one. Two validations without that are allowed, and the
// third one stops. A NaN is no improvement, or a training that has failed would go on forever.
TEST(Metrics, StopsEarlyWhenPatienceEnds) {
    EarlyStop stop(2, 0.1);
    EXPECT_FALSE(stop.update(1.0));
    EXPECT_FALSE(stop.update(0.95));
    EXPECT_FALSE(stop.update(0.5));
    EXPECT_FALSE(stop.update(0.45));
    EXPECT_FALSE(stop.update(kNan));
    EXPECT_TRUE(stop.update(0.41));
    EXPECT_EQ(stop.best(), 0.5);
    // After a restart the count goes on; it does not begin anew.
    EarlyStop later(2, 0.1);
    later.resume(0.5, 2);
    EXPECT_TRUE(later.update(0.45));
}

// The index of the first one, so that the error can name the place.
TEST(Metrics, FindsWhatIsNotFinite) {
    std::vector<float> values(10, 1.0f);
    EXPECT_FALSE(first_not_finite(values));
    values[7] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(first_not_finite(values), 7u);
    values[3] = std::nanf("");
    EXPECT_EQ(first_not_finite(values), 3u);
}

// A line for people and JSON for plot.py, from one set of figures. In the JSON, an epoch without
// validation has no such member, since 0 would be a wrong figure.
TEST(Metrics, WritesFiguresAsLineAndJson) {
    EpochFigures figures{3, 192, 4, 0.5, 0.25, 20000, 4.0, 1.0, 0.25, {}};
    EXPECT_EQ(line_of(figures),
              "epoch=3 step=192 loss=0.500000 validation=0.250000 samples/s=5000 (1250 per worker) "
              "communication=25 % of the time, 75 % of it hidden");
    const auto json = nlohmann::json::parse(json_of(figures));
    EXPECT_EQ(json.at("samples_per_second_per_worker"), 1250);
    EXPECT_EQ(json.at("computation_seconds"), 3.75);
    EXPECT_EQ(json.at("communication_share"), 0.25);
    EXPECT_EQ(json.at("validation"), 0.25);
    EXPECT_FALSE(nlohmann::json::parse(json_of({})).contains("validation"));
    EXPECT_FALSE(json.contains("since_step"));
    // A mean of the last steps only must not be taken for the epoch's.
    figures.since = 170;
    EXPECT_THAT(line_of(figures),
                testing::HasSubstr(" loss=0.500000 (since step 170) validation="));
    EXPECT_EQ(nlohmann::json::parse(json_of(figures)).at("since_step"), 170);
}

}  // namespace
}  // namespace ddprun::trainer
