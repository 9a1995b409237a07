// The training of `train`: its loop, its figures and its end. main makes the objects that it uses;
// they outlive it.
//
// In a step the sampler deals a batch, which a thread has put together before. Backward fills the
// reducer's buckets, and the reducer averages them over the ranks meanwhile. Then the optimizer
// updates the parameters with the rate of the schedule. (16-bit parameters have master weights in
// float32, and float16 a scaled loss. With --zero=1 each rank averages and updates its share, and
// keeps the momenta of that share alone.) At the end of the step all ranks agree on whether to
// stop. A thread writes the snapshots. Thread: one. Errors are thrown as Failures.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "examples/dataset.h"
#include "examples/line_clock.h"
#include "examples/mlp.h"
#include "examples/train_options.h"
#include "trainer/gradients/gradient_reducer.h"
#include "trainer/group/process_group.h"
#include "trainer/optimizer/sharded_optimizer.h"
#include "trainer/precision/gradient_scaler.h"
#include "trainer/precision/master_weights.h"
#include "trainer/snapshot/load_into.h"
#include "trainer/snapshot/snapshot_writer.h"
#include "trainer/training/data_loader.h"
#include "trainer/training/metrics.h"
#include "trainer/worker/context.h"
#include "trainer/worker/progress.h"
#include "trainer/worker/snapshot_request.h"
#include "trainer/worker/stop_request.h"
#include "trainer/worker/store.h"

namespace example {

class Training {
  public:
    // What main hands over.
    struct Parts {
        const TrainOptions& options;
        const ddprun::trainer::Context& context;
        ddprun::trainer::Store& store;
        ddprun::trainer::ProcessGroup& group;
        const Dataset& data;
        Mlp& mlp;
        ddprun::trainer::DistributedSampler sampler;
        ddprun::trainer::Progress progress;
        ddprun::trainer::StopRequest stop;
        ddprun::trainer::SnapshotRequest snapshot;
    };

    explicit Training(Parts parts) : p_(std::move(parts)), early_(p_.options.patience) {}

    // Gives all ranks the same state: that of the newest valid snapshot, else the initial one.
    void begin();

    enum class End { done, stopped };
    // Trains until all steps are done, early stopping ends it, or all ranks have agreed to stop.
    End run();

    // "loss=… checksum=…". First verifies that all ranks have the same parameters.
    std::string result();

  private:
    void make_optimizer();
    void resume();
    ddprun::trainer::GradientReducer& reducer();
    std::unique_ptr<ddprun::trainer::DataLoader> make_loader();
    void step();
    void update(float rate);
    std::vector<ddprun::trainer::Tensor> tensors();
    bool done() const;
    double rate() const;
    void save();
    ddprun::trainer::WeightedMean validation();
    void tell_figures();
    void log_step();
    void report();
    void crash_if_asked();

    Parts p_;
    std::unique_ptr<ddprun::trainer::GradientReducer> reducer_;   // null with --zero=1
    std::unique_ptr<ddprun::trainer::ShardedOptimizer> sharded_;  // null without
    std::unique_ptr<ddprun::trainer::DataLoader> loader_;
    std::optional<ddprun::trainer::MasterWeights> masters_;    // of 16-bit parameters
    std::optional<ddprun::trainer::GradientScaler> scaler_;    // with float16
    std::unique_ptr<ddprun::trainer::SnapshotWriter> writer_;  // null without --snapshot-dir
    std::int64_t step_ = 0;                                    // steps done
    std::int64_t saved_ = -1;               // step of the snapshot that was loaded
    ddprun::trainer::WeightedMean loss_;    // of this rank, since the last figures
    ddprun::trainer::WeightedMean recent_;  // of this rank, since the last progress line
    ddprun::trainer::EpochFigures figures_;
    ddprun::trainer::EarlyStop early_;
    double told_at_ = 0;    // when the last figures were; seconds, steady clock
    LineClock line_clock_;  // of the last line
};

}  // namespace example
