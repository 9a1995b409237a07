// The training of `gpt`: its loop, its figures and its end. main makes the objects that it uses;
// they outlive it.
//
// In a step the sampler deals windows of the text. Backward fills the reducer's buckets, and the
// reducer averages them over the ranks meanwhile. With accumulation only the last backward pass of
// a step does that. Then the gradients are clipped and AdamW updates the parameters. At the end of
// the step all ranks agree on whether to stop. A thread writes the snapshots. Thread: one.
//
// Errors: those of its parts; malformed, for gradients that are not finite.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "examples/gpt/gpt_model.h"
#include "examples/gpt/gpt_options.h"
#include "examples/gpt/text.h"
#include "examples/line_clock.h"
#include "trainer/gradients/gradient_reducer.h"
#include "trainer/snapshot/snapshot_writer.h"
#include "trainer/training/distributed_sampler.h"
#include "trainer/training/metrics.h"
#include "trainer/worker/progress.h"
#include "trainer/worker/snapshot_request.h"
#include "trainer/worker/stop_request.h"

namespace example::gpt {

class GptTraining {
  public:
    // What main hands over.
    struct Parts {
        const GptOptions& options;
        const ddprun::trainer::Context& context;
        ddprun::trainer::Store& store;
        ddprun::trainer::ProcessGroup& group;
        const Text& text;
        Gpt& gpt;
        ddprun::trainer::DistributedSampler sampler;
        ddprun::trainer::Progress progress;
        ddprun::trainer::StopRequest stop;
        ddprun::trainer::SnapshotRequest snapshot;
    };

    explicit GptTraining(Parts parts) : p_(std::move(parts)) {}

    // Gives all ranks the same state: that of the newest valid snapshot, else the initial one.
    ddprun::Result<void> begin();

    enum class End { done, stopped };
    // Trains until all steps are done, or all ranks have agreed to stop.
    ddprun::Result<End> run();

    // Rank 0 prints a sample and the last line, "validation=… checksum=…", and writes --save. First
    // all ranks verify that they have the same parameters.
    ddprun::Result<void> finish();

  private:
    ddprun::Result<void> resume();
    ddprun::Result<End> take_steps();
    ddprun::Result<void> step();
    std::vector<Batch> deal();
    ddprun::Result<void> compute(const std::vector<Batch>& batches);
    double rate() const;
    ddprun::Result<void> save();
    ddprun::Result<double> validated();
    ddprun::Result<void> tell_figures();
    ddprun::Result<void> log_step();
    void report();
    void crash_if_asked();

    Parts p_;
    std::unique_ptr<ddprun::trainer::GradientReducer> reducer_;
    std::unique_ptr<ddprun::trainer::SnapshotWriter> writer_;  // null: no snapshots
    std::int64_t step_ = 0;                                    // steps done
    std::int64_t saved_ = -1;               // step of the snapshot that was loaded; -1: none
    ddprun::trainer::WeightedMean loss_;    // of this rank, since the last figures
    ddprun::trainer::WeightedMean recent_;  // of this rank, since the last progress line
    ddprun::trainer::EpochFigures figures_;
    std::optional<double> validated_;  // the validation loss after step_, if it is known
    double told_at_ = 0;               // when the last figures were; seconds, steady clock
    LineClock line_clock_;             // of the last line
};

// The mean loss of the validation windows over all ranks: each takes its part, `batch` windows at a
// time. The mean is exact also if they do not divide evenly.
ddprun::Result<ddprun::trainer::WeightedMean> validate(ddprun::trainer::ProcessGroup& group,
                                                       const Text& text, Gpt& gpt, int batch);

}  // namespace example::gpt
