// The training of `train`: state, snapshots, the loop. Objects that it uses are handed in by main
// and outlive it.
//
// Thread: one; snapshots are written on one of their own. What a snapshot holds: parameters,
// momentum, step, samples consumed, seed; with these the run goes on with the same bits. All
// randomness is a function of the seed and a place, so there is no generator's state to keep.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "examples/dataset.h"
#include "examples/mlp.h"
#include "examples/train_options.h"
#include "trainer/context.h"
#include "trainer/metrics.h"
#include "trainer/process_group.h"
#include "trainer/progress.h"
#include "trainer/snapshot_writer.h"
#include "trainer/store.h"

namespace example {

class Training {
  public:
    struct Parts {
        const TrainOptions& options;
        const ddprun::trainer::Context& context;
        ddprun::trainer::Store& store;
        ddprun::trainer::ProcessGroup& group;
        Dataset& data;
        Mlp& mlp;
        MlpShape shape;
        ddprun::trainer::Progress progress;
        const std::atomic<bool>& stop_asked;  // set by SIGTERM
    };

    explicit Training(Parts parts) : p_(std::move(parts)) {}

    // The same state on all ranks: that of the newest valid snapshot, else the initial one.
    ddprun::Result<void> begin();

    enum class End { done, stopped };
    // Steps until all are done, or all ranks have agreed to stop.
    ddprun::Result<End> run();

    // "loss=… checksum=…", after it made sure that all ranks have the same parameters.
    ddprun::Result<std::string> result();

  private:
    ddprun::Result<void> restore(const ddprun::trainer::Snapshot& snapshot);
    ddprun::Result<bool> step();  // whether some rank asks to stop
    ddprun::Result<void> save();
    ddprun::Result<void> validate();
    void report();
    void crash_if_asked();
    void log_step(float loss);

    Parts p_;
    std::unique_ptr<ddprun::trainer::SnapshotWriter> writer_;  // null without --snapshot-dir
    std::int64_t step_ = 0;                                    // done
    std::int64_t consumed_ = 0;                                // samples, over all ranks
    std::int64_t saved_ = -1;                // step of the snapshot that was resumed from
    ddprun::trainer::EpochFigures figures_;  // since the last validation
    double validated_at_ = 0;
    double logged_at_ = 0;  // seconds on the steady clock
    std::int64_t logged_step_ = 0;
};

}  // namespace example
