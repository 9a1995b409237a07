// What mnist and gpt_torch have in common: the place in the job, snapshots of module and optimizer,
// figures, and the end on which all ranks agree. The programs have model, data and step.
//
//   TrainingRun run(options, {samples, seed}, StopRequest::from_environment());
//   run.begin(module, optimizer, words, validate);
//   while (run.goes_on()) {
//       … a step with the samples run.next(batch) …
//       run.end_step(loss, samples, model.times());
//   }
//   return run.finish();
//
// Thread: one. Errors are exceptions of the type ModuleError. This header is without libtorch's.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "examples/line_clock.h"
#include "examples/option_table.h"
#include "trainer/group/process_group.h"
#include "trainer/snapshot/snapshot_writer.h"
#include "trainer/torch/module_reducer.h"
#include "trainer/torch/module_state.h"
#include "trainer/training/distributed_sampler.h"
#include "trainer/training/metrics.h"
#include "trainer/worker/progress.h"
#include "trainer/worker/snapshot_request.h"
#include "trainer/worker/stop_request.h"

namespace example {

struct RunOptions {
    std::string program;       // for messages
    std::int64_t steps = -1;   // the training's end in steps; -1: only `epochs` counts
    std::int64_t epochs = -1;  // the end in epochs
    std::string snapshot_dir;  // empty: none
    std::int64_t snapshot_every = 20;
    int snapshot_keep = 3;
    std::int64_t log_every = 10;
    std::string metrics;  // file for JSON lines, for plot.py; empty: none
    std::string save;     // file for the trained network, which the program writes; empty: none
    std::int64_t timeout_s = 300;
    ddprun::trainer::Backend backend = ddprun::trainer::Backend::gloo;
    std::int64_t crash_at_step = -1;  // in the first generation, to try the restart; -1: never
    int crash_rank = 0;
};

// The result's value. Throws ModuleError for an error.
template <class T>
T or_throw(ddprun::Result<T> result) {
    if (!result) throw ddprun::trainer::ModuleError(result.error());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class TrainingRun {
  public:
    using Validate = std::function<ddprun::trainer::WeightedMean()>;  // this rank's part

    // Meets the other ranks.
    TrainingRun(const RunOptions& options, const ddprun::trainer::SamplerOptions& sampler,
                ddprun::trainer::StopRequest stop);

    // Loads the newest snapshot, if there is one. `words`: settings that a snapshot must share.
    void begin(torch::nn::Module& module, torch::optim::Optimizer& optimizer,
               const ddprun::trainer::Metadata& words, Validate validate);

    // Called before each snapshot and each validation, on all ranks.
    void set_prepare(std::function<void()> prepare) { prepare_ = std::move(prepare); }

    // Whether there is another step. False after the last one, or when the launcher wants a stop.
    bool goes_on();

    // This rank's samples of the step; equally many on all ranks.
    std::vector<std::int64_t> next(std::int64_t batch);

    // How many samples this rank still gets in this epoch.
    std::int64_t left() const { return sampler_.left(); }

    // `loss`: the mean over this rank's `samples`. Prints and saves what is due.
    void end_step(double loss, double samples, const ddprun::trainer::ReduceTimes& times);

    // All ranks verify that they have the same parameters. Rank 0 prints `result` and the checksum.
    // Returns the exit code: 143 after a stop, because work is left.
    int finish(const std::string& result);

    // The mean of the validation over all ranks.
    double validation();
    // The position in epochs, at the step's start; it does not depend on the number of ranks.
    double epochs() const;
    std::int64_t step() const { return step_; }
    int rank() const { return context_.rank.value; }
    int world() const { return context_.world_size; }
    bool stopped() const { return stopped_; }
    // The GPU on which the model lies; -1: the group works on host memory.
    int gpu() const;
    ddprun::trainer::ProcessGroup& group() { return *group_; }

  private:
    void resume(const ddprun::trainer::Metadata& words);
    ddprun::trainer::Metadata words_now() const;
    void log_step();
    void tell_figures();
    void save();
    void report();
    void crash_if_asked();

    const RunOptions options_;
    const ddprun::trainer::Context context_;
    const std::int64_t size_;  // samples of an epoch
    ddprun::trainer::StopRequest stop_;
    ddprun::trainer::SnapshotRequest snapshot_ =
        ddprun::trainer::SnapshotRequest::from_environment();
    ddprun::trainer::Progress progress_ = ddprun::trainer::Progress::from_environment();
    std::unique_ptr<ddprun::trainer::Store> store_;
    std::unique_ptr<ddprun::trainer::ProcessGroup> group_;
    ddprun::trainer::DistributedSampler sampler_;
    // What the snapshots in progress read; older than the writer.
    std::deque<ddprun::trainer::ModuleState> being_saved_;
    std::unique_ptr<ddprun::trainer::SnapshotWriter> writer_;  // null: no snapshots
    torch::nn::Module* module_ = nullptr;
    torch::optim::Optimizer* optimizer_ = nullptr;
    ddprun::trainer::Metadata words_;
    Validate validate_;
    std::function<void()> prepare_ = [] {};
    std::int64_t step_ = 0;
    std::int64_t saved_ = -1;  // step of the snapshot that was loaded; -1: none
    bool stopped_ = false;
    ddprun::trainer::WeightedMean loss_, recent_;  // since the last figures, since the last line
    ddprun::trainer::EpochFigures figures_;
    double told_at_ = 0;    // when the last figures were
    LineClock line_clock_;  // of the last line
};

// Adds the options of RunOptions to a program's table, whose options are derived from it.
template <class Options>
void add_run_options(std::map<std::string, Setter<Options>>& table) {
    const auto add = [&](const char* name, const Setter<RunOptions>& setter) {
        table[name] = [setter](Options& options, const std::string& value) {
            return setter(options, value);
        };
    };
    using O = RunOptions;
    add("--steps", number(&O::steps, 0, 1e15));
    add("--epochs", number(&O::epochs, 0, 1e9));
    add("--snapshot-dir", text(&O::snapshot_dir));
    add("--snapshot-every", number(&O::snapshot_every, 1, 1e15));
    add("--snapshot-keep", number(&O::snapshot_keep, 1, 1e6));
    add("--log-every", number(&O::log_every, 1, 1e15));
    add("--metrics", text(&O::metrics));
    add("--save", text(&O::save));
    add("--timeout", number(&O::timeout_s, 1, 1e6));
    add("--backend", word(&O::backend, std::map<std::string, ddprun::trainer::Backend>{
                                           {"gloo", ddprun::trainer::Backend::gloo},
                                           {"nccl", ddprun::trainer::Backend::nccl}}));
    add("--crash-at-step", number(&O::crash_at_step, 0, 1e15));
    add("--crash-rank", number(&O::crash_rank, 0, 1e6));
}

// Loads the tensors of a safetensors file, of ours or of Python's, into a module; and writes one
// with the module's, and with `words` as metadata.
void load_file(const std::string& path, torch::nn::Module& module);
void save_file(const std::string& path, const torch::nn::Module& module,
               ddprun::trainer::Metadata words = {});

// main of such a program: calls `body` and turns exceptions into a line, the launcher's error file,
// and an exit code.
int run_program(const std::string& program, const std::function<int()>& body);

}  // namespace example
