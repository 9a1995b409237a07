// The numbers that a training reports: means weighted by samples, early stopping, the figures of an
// epoch as text and as JSON, and a search for values that are not finite.
//
// Pure. agreement.h extends the means to all ranks. Such a mean is exact also if the last batches
// differ in size, because sums and weights are added, not means.
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
    // Empty before the first sample.
    std::optional<double> mean() const {
        return weight_ > 0 ? std::optional(sum_ / weight_) : std::nullopt;
    }
    double sum() const { return sum_; }
    double weight() const { return weight_; }
    // From a sum and a weight that were added elsewhere, for example over ranks.
    static WeightedMean of(double sum, double weight) {
        WeightedMean mean;
        mean.sum_ = sum;
        mean.weight_ = weight;
        return mean;
    }

  private:
    double sum_ = 0, weight_ = 0;
};

// Stops a training whose figure (lower is better) no longer improves: when it has not fallen by
// `least` for more than `patience` updates. If every rank passes the same figure (a mean over
// ranks), all ranks decide alike. A snapshot keeps best() and waited().
class EarlyStop {
  public:
    explicit EarlyStop(int patience, double least = 0) : patience_(patience), least_(least) {}

    // Whether to stop now. A figure that is not finite counts as no improvement.
    bool update(double figure);
    // Continues with the values of a snapshot.
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
    int waited_ = 0;  // updates since the best figure
};

// The index of the first element that is an infinity or a NaN.
std::optional<std::size_t> first_not_finite(std::span<const float> values);

// The figures of one epoch of the whole job.
struct EpochFigures {
    std::int64_t epoch = 0;
    std::int64_t step = 0;
    int world = 1;
    double loss = 0;
    std::optional<double> validation;
    double samples = 0;        // over all ranks
    double seconds = 0;        // duration of the epoch
    double communication = 0;  // seconds in which gradients were on their way; slowest rank
    double waited = 0;         // the part of it after backward (see reduce_times.h)
    // After a resume in the middle of the epoch: the figures count from this step on.
    std::optional<std::int64_t> since;
};

// One line for people: "epoch=3 step=192 loss=0.123 validation=0.2 samples/s=5000 (1250 per worker)
// communication=12 % of the time, 80 % of it hidden". With `since`: "loss=0.123 (since step 170)".
std::string line_of(const EpochFigures& figures);

// One line of JSON, without a line end. trainer/training/plot.py reads it.
std::string json_of(const EpochFigures& figures);

}  // namespace ddprun::trainer
