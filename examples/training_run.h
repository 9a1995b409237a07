// What the trainings of this folder have in common: options, the loop around the steps, lines of
// progress and figures, snapshots, and the end on which all ranks agree. A program derives from
// TrainingRun: it has the model, the data and the step.
//
//   begin_steps();
//   while (goes_on()) {
//       … a step …
//       count(loss, samples);
//       count(reducer.times());
//       end_step();
//   }
//
// What is due after a step follows from numbers that are equal on all ranks: the step, the options,
// the position in the data, results of collective calls. So all ranks make the same calls.
//
// Thread: one. Errors are thrown as Failures.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "examples/line_clock.h"
#include "examples/option_table.h"
#include "trainer/gradients/reduce_times.h"
#include "trainer/group/process_group.h"
#include "trainer/snapshot/save/snapshot_writer.h"
#include "trainer/training/distributed_sampler.h"
#include "trainer/training/metrics.h"
#include "trainer/worker/progress.h"
#include "trainer/worker/snapshot_request.h"
#include "trainer/worker/stop_request.h"

namespace example {

struct RunOptions {
    std::string program = {};       // for messages
    std::int64_t steps = -1;        // the training's end in steps; -1: only `epochs` counts
    std::int64_t epochs = -1;       // the end in epochs
    std::string snapshot_dir = {};  // empty: none
    std::int64_t snapshot_every = 20;
    int snapshot_keep = 3;
    std::int64_t log_every = 10;
    std::int64_t validate_every = 0;  // steps; 0: after each epoch
    std::string metrics = {};         // file for JSON lines, for plot.py; empty: none
    std::string save = {};  // file for the trained network, which the program writes; empty: none
    std::int64_t timeout_s = 300;
    ddprun::trainer::Backend backend = ddprun::trainer::Backend::automatic;
    std::int64_t crash_at_step = -1;  // in the first generation, to try the restart; -1: never
    int crash_rank = 0;
    int crash_signal = 9;
    int crash_exit = -1;  // exit code; -1: crash by crash_signal
    bool help = false;
};

// Adds the options that all programs have to a program's table, whose options are derived from
// RunOptions.
template <class Options>
std::map<std::string, Setter<Options>> with_run_options(
    std::map<std::string, Setter<Options>> table) {
    using O = RunOptions;
    const std::map<std::string, Setter<O>> common{
        {"--steps", number(&O::steps, 0, 1e15)},
        {"--snapshot-dir", text(&O::snapshot_dir)},
        {"--snapshot-every", number(&O::snapshot_every, 1, 1e15)},
        {"--snapshot-keep", number(&O::snapshot_keep, 1, 1e6)},
        {"--log-every", number(&O::log_every, 1, 1e15)},
        {"--metrics", text(&O::metrics)},
        {"--timeout", number(&O::timeout_s, 1, 1e6)},
        {"--crash-at-step", number(&O::crash_at_step, 0, 1e15)},
        {"--crash-rank", number(&O::crash_rank, 0, 1e6)}};
    table.insert(common.begin(), common.end());
    return table;
}

// For the options --backend, and --validate-every where a program has it.
inline const std::map<std::string, ddprun::trainer::Backend> kBackends{
    {"auto", ddprun::trainer::Backend::automatic},
    {"gloo", ddprun::trainer::Backend::gloo},
    {"nccl", ddprun::trainer::Backend::nccl}};

class TrainingRun {
  public:
    enum class End { done, stopped };

    virtual ~TrainingRun() = default;
    TrainingRun(const TrainingRun&) = delete;
    TrainingRun& operator=(const TrainingRun&) = delete;

    // Whether there is another step. False after the last one, or when the launcher wants a stop.
    bool goes_on();
    // Prints and saves what is due.
    void end_step();
    // `loss`: the mean over this rank's `samples`.
    void count(double loss, double samples);
    void count(const ddprun::trainer::ReduceTimes& times);

    std::int64_t steps() const { return step_; }  // done
    End end() const { return stopped_ ? End::stopped : End::done; }

  protected:
    // `options`, `context`, `store` and `group` must outlive it.
    TrainingRun(const RunOptions& options, const ddprun::trainer::Context& context,
                ddprun::trainer::Store& store, ddprun::trainer::ProcessGroup& group,
                ddprun::trainer::StopRequest stop);

    // The position in the data, and how many samples this rank still gets in this epoch.
    virtual ddprun::trainer::SamplerPosition position() const = 0;
    virtual std::int64_t left() const = 0;
    // The mean loss of the validation over all ranks.
    virtual std::optional<double> validate() = 0;
    virtual void save() = 0;
    // The parameters, or a module's buffers, will be looked at: for validation or snapshot.
    virtual void settle() {}
    virtual bool ends_early() const { return false; }
    // A mean loss, as it is printed.
    virtual double checked(const ddprun::trainer::WeightedMean& mean, const char* of) const;
    // "samples/s=128": what a line of progress says behind the loss.
    virtual std::string speed(double samples, double seconds) const;

    // Where snapshots are, and the writer for new ones. The folder's warnings are printed.
    ddprun::trainer::SnapshotFolder open_folder() const;
    void write_to(ddprun::trainer::SnapshotFolder folder,
                  const std::optional<ddprun::trainer::GpuTensors>& gpu);
    // This snapshot has been loaded, with the position in the data.
    void resumed_from(const ddprun::trainer::SnapshotName& name);
    // Once, before the first step.
    void begin_steps();
    void print(const std::string& line) const;  // rank 0 alone

    const RunOptions& run_options_;
    const ddprun::trainer::Context& context_;
    ddprun::trainer::Store& store_;
    ddprun::trainer::ProcessGroup& group_;
    // Null: no snapshots. A class whose members it reads resets it in its destructor.
    std::unique_ptr<ddprun::trainer::SnapshotWriter> writer_;
    ddprun::trainer::WeightedMean recent_;  // of this rank, since the last line
    int digits_ = 6;                        // of the loss in a line

  private:
    bool is_last() const;
    void log_step();
    void tell_figures();
    void report();
    void crash_if_asked();

    ddprun::trainer::StopRequest stop_;
    ddprun::trainer::SnapshotRequest snapshot_ =
        ddprun::trainer::SnapshotRequest::from_environment();
    ddprun::trainer::Progress progress_ = ddprun::trainer::Progress::from_environment();
    std::int64_t step_ = 0;
    std::int64_t saved_ = -1;  // step of the snapshot that was loaded; -1: none
    bool stopped_ = false;
    ddprun::trainer::WeightedMean loss_;  // of this rank, since the last figures
    ddprun::trainer::EpochFigures figures_;
    double told_at_ = 0;    // when the last figures were; seconds, steady clock
    LineClock line_clock_;  // of the last line
};

}  // namespace example
