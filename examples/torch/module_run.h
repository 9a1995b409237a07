// What mnist and gpt_torch have in common beside TrainingRun: the place in the job, and snapshots
// of module and optimizer. The programs have model, data and step.
//
//   ModuleRun run(options, {samples, seed}, StopRequest::from_environment());
//   run.begin(module, optimizer, words, validate);
//   while (run.goes_on()) {
//       … a step with the samples run.next(batch) …
//       run.count(loss, samples);
//       run.count(model.times());
//       run.end_step();
//   }
//   return run.finish();
//
// Thread: one. Errors are exceptions: Failure, and ModuleError inside libtorch. This header is
// without libtorch's.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "examples/training_run.h"
#include "trainer/torch/module_reducer.h"
#include "trainer/torch/module_state.h"
#include "trainer/worker/or_throw.h"

namespace example {

// What a run stands on: made before TrainingRun, which refers to it.
struct ModulePlace {
    RunOptions options;
    ddprun::trainer::Context context;
    std::unique_ptr<ddprun::trainer::Store> store;
    std::unique_ptr<ddprun::trainer::ProcessGroup> group;
};

class ModuleRun final : private ModulePlace, public TrainingRun {
  public:
    using Validate = std::function<ddprun::trainer::WeightedMean()>;  // this rank's part

    // Meets the other ranks.
    ModuleRun(const RunOptions& options, const ddprun::trainer::SamplerOptions& sampler,
              ddprun::trainer::StopRequest stop);

    ~ModuleRun() override { writer_.reset(); }  // it may still read what is being saved

    // Loads the newest snapshot, if there is one. `words`: settings that a snapshot must share.
    void begin(torch::nn::Module& module, torch::optim::Optimizer& optimizer,
               const ddprun::trainer::Metadata& words, Validate validate);

    // Called before each snapshot and each validation, on all ranks.
    void set_prepare(std::function<void()> prepare) { prepare_ = std::move(prepare); }

    bool goes_on();  // also begins the next epoch
    // This rank's samples of the step; equally many on all ranks.
    std::vector<std::int64_t> next(std::int64_t batch) { return sampler_.next(batch); }

    // How many samples this rank still gets in this epoch.
    std::int64_t left() const override { return sampler_.left(); }

    // All ranks verify that they have the same parameters. Rank 0 prints `result` and the checksum.
    // Returns the exit code: 143 after a stop, because work is left.
    int finish(const std::string& result);

    // The mean of the validation over all ranks.
    double validation() { return *validate(); }
    // The position in epochs, at the step's start; it does not depend on the number of ranks.
    double epochs() const;
    int rank() const { return context_.rank.value; }
    int world() const { return context_.world_size; }
    bool stopped() const { return end() == End::stopped; }
    // The GPU on which the model lies; -1: the group works on host memory.
    int gpu() const;
    ddprun::trainer::ProcessGroup& group() { return group_; }

  protected:
    ddprun::trainer::SamplerPosition position() const override { return sampler_.position(); }
    std::optional<double> validate() override;
    void save() override;
    void settle() override { prepare_(); }
    double checked(const ddprun::trainer::WeightedMean& mean, const char* of) const override;

  private:
    void resume(const ddprun::trainer::Metadata& words);
    ddprun::trainer::Metadata words_now() const;

    const std::int64_t size_;  // samples of an epoch
    ddprun::trainer::DistributedSampler sampler_;
    // What the snapshots in progress read.
    std::deque<ddprun::trainer::ModuleState> being_saved_;
    torch::nn::Module* module_ = nullptr;
    torch::optim::Optimizer* optimizer_ = nullptr;
    ddprun::trainer::Metadata words_;
    Validate validate_;
    std::function<void()> prepare_ = [] {};
};

// Loads the tensors of a safetensors file, of ours or of Python's, into a module; and writes one
// with the module's, and with `words` as metadata.
void load_file(const std::string& path, torch::nn::Module& module);
void save_file(const std::string& path, const torch::nn::Module& module,
               ddprun::trainer::Metadata words = {});

// main of such a program: calls `body` and turns exceptions into a line, the launcher's error file,
// and an exit code.
int run_program(const std::string& program, const std::function<int()>& body);

}  // namespace example
