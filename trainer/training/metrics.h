// What a training tells about itself: means weighted by samples, when to stop early, figures of an
// epoch as a line and as JSON, and whether numbers are still numbers.
//
// Pure; agreement.h carries these over ranks. A mean over ranks is exact also when the last
// batches differ: sums and weights are added, not means.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ddprun::trainer {

// The mean of values that stand for `weight` samples each.
class WeightedMean {
  public:
    void add(double value, double weight = 1) {
        sum_ += value * weight;
        weight_ += weight;
    }
    void merge(const WeightedMean& other) {
        sum_ += other.sum_;
        weight_ += other.weight_;
    }
    // Nothing before the first sample.
    std::optional<double> mean() const {
        return weight_ > 0 ? std::optional(sum_ / weight_) : std::nullopt;
    }
    double sum() const { return sum_; }
    double weight() const { return weight_; }
    static WeightedMean of(double sum, double weight) {
        WeightedMean mean;
        mean.sum_ = sum;
        mean.weight_ = weight;
        return mean;
    }

  private:
    double sum_ = 0, weight_ = 0;
};

// Stops when a figure that should fall has not fallen by `least` for more than `patience`
// validations. Feed every rank the same figure (a mean over ranks) and all decide alike. What is
// kept between runs is best() and waited().
class EarlyStop {
  public:
    explicit EarlyStop(int patience, double least = 0) : patience_(patience), least_(least) {}

    // Whether to stop now. A figure that is not a number counts as no improvement.
    bool update(double figure);
    void resume(double best, int waited) {
        best_ = best;
        waited_ = waited;
    }
    std::optional<double> best() const { return best_; }
    int waited() const { return waited_; }

  private:
    int patience_;
    double least_;
    std::optional<double> best_;
    int waited_ = 0;
};

// The first element that is infinite or not a number.
std::optional<std::size_t> first_not_finite(std::span<const float> values);

// The figures of one epoch, of the whole job.
struct EpochFigures {
    std::int64_t epoch = 0;
    std::int64_t step = 0;
    int world = 1;
    double loss = 0;
    std::optional<double> validation;
    double samples = 0;        // over all ranks
    double seconds = 0;        // of the epoch
    double communication = 0;  // seconds in which gradients were on their way, of the slowest rank
    double waited = 0;         // of these, the seconds after backward (see reduce_times.h)
};

// "epoch=3 step=192 loss=0.123 validation=0.2 samples/s=5000 (1250 per worker) communication=12 %
// of the time, 80 % of it hidden"
std::string line_of(const EpochFigures& figures);

// The same as one line of JSON, without the line end; what trainer/training/plot.py reads.
std::string json_of(const EpochFigures& figures);

}  // namespace ddprun::trainer
