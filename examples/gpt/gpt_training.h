// The training of `gpt`: its step, its state and its end. main makes the objects that it uses; they
// outlive it. training_run.h has the loop.
//
// In a step the sampler deals windows of the text. Backward fills the reducer's buckets, and the
// reducer averages them over the ranks meanwhile. With accumulation only the last backward pass of
// a step does that. Then the gradients are clipped and AdamW updates the parameters. At the end of
// the step all ranks agree on whether to stop. A thread writes the snapshots. Thread: one.
//
// Errors, thrown as Failures: those of its parts; malformed, for gradients that are not finite.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "examples/gpt/gpt_model.h"
#include "examples/gpt/gpt_options.h"
#include "examples/gpt/text.h"
#include "examples/training_run.h"
#include "trainer/gradients/gradient_reducer.h"

namespace example::gpt {

class GptTraining final : public TrainingRun {
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
        ddprun::trainer::StopRequest stop;
    };

    explicit GptTraining(Parts parts)
        : TrainingRun(parts.options, parts.context, parts.store, parts.group,
                      std::move(parts.stop)),
          p_(std::move(parts)) {}

    // Gives all ranks the same state: that of the newest valid snapshot, else the initial one.
    void begin();

    // Trains until all steps are done, or all ranks have agreed to stop.
    End run();

    // Rank 0 prints a sample and the last line, "validation=… checksum=…", and writes --save. First
    // all ranks verify that they have the same parameters.
    void finish();

  protected:
    ddprun::trainer::SamplerPosition position() const override { return p_.sampler.position(); }
    std::int64_t left() const override { return p_.sampler.left(); }
    std::optional<double> validate() override;
    void save() override;
    std::string speed(double samples, double seconds) const override;

  private:
    void resume();
    void step();
    std::vector<Batch> deal();
    void compute(const std::vector<Batch>& batches);
    double rate() const;

    Parts p_;
    std::unique_ptr<ddprun::trainer::GradientReducer> reducer_;
    std::optional<double> validated_;  // the validation loss after the last step, if it is known
};

// The mean loss of the validation windows over all ranks: each takes its part, `batch` windows at a
// time. The mean is exact also if they do not divide evenly.
ddprun::Result<ddprun::trainer::WeightedMean> validate(ddprun::trainer::ProcessGroup& group,
                                                       const Text& text, Gpt& gpt, int batch);

}  // namespace example::gpt
