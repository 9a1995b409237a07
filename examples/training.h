// The training of `train`: its step, its state and its end. main makes the objects that it uses;
// they outlive it. training_run.h has the loop.
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
#include "examples/mlp.h"
#include "examples/train_options.h"
#include "examples/training_run.h"
#include "trainer/gradients/gradient_reducer.h"
#include "trainer/group/process_group.h"
#include "trainer/optimizer/sharded_optimizer.h"
#include "trainer/precision/gradient_scaler.h"
#include "trainer/precision/master_weights.h"
#include "trainer/snapshot/load/load_into.h"
#include "trainer/training/data_loader.h"

namespace example {

class Training final : public TrainingRun {
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
        ddprun::trainer::StopRequest stop;
    };

    explicit Training(Parts parts)
        : TrainingRun(parts.options, parts.context, parts.store, parts.group,
                      std::move(parts.stop)),
          p_(std::move(parts)),
          early_(p_.options.patience) {}

    ~Training() override { writer_.reset(); }  // it may still read the optimizer's state

    // Gives all ranks the same state: that of the newest valid snapshot, else the initial one.
    void begin();

    // Trains until all steps are done, early stopping ends it, or all ranks have agreed to stop.
    End run();

    // "loss=… checksum=…". First verifies that all ranks have the same parameters.
    std::string result();

  protected:
    ddprun::trainer::SamplerPosition position() const override;
    std::int64_t left() const override;
    std::optional<double> validate() override;
    void save() override;
    void settle() override;
    bool ends_early() const override;
    std::string speed(double samples, double seconds) const override;

  private:
    void make_optimizer();
    void resume();
    ddprun::trainer::GradientReducer& reducer();
    std::unique_ptr<ddprun::trainer::DataLoader> make_loader();
    void step();
    void update(float rate);
    std::vector<ddprun::trainer::Tensor> tensors();
    double rate() const;

    Parts p_;
    std::unique_ptr<ddprun::trainer::GradientReducer> reducer_;   // null with --zero=1
    std::unique_ptr<ddprun::trainer::ShardedOptimizer> sharded_;  // null without
    std::unique_ptr<ddprun::trainer::DataLoader> loader_;
    std::optional<ddprun::trainer::MasterWeights> masters_;  // of 16-bit parameters
    std::optional<ddprun::trainer::GradientScaler> scaler_;  // with float16
    ddprun::trainer::EarlyStop early_;
};

}  // namespace example
