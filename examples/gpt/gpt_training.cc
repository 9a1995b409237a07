// The steps of a training, its snapshots, and its end.
#include "examples/gpt/gpt_training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "examples/gpt/gpt_state.h"
#include "examples/gpt/model_file.h"
#include "examples/gpt/sample_text.h"
#include "trainer/training/agreement.h"
#include "trainer/training/schedule.h"
#include "trainer/worker/or_throw.h"

namespace example::gpt {

using ddprun::Error;
using ddprun::ErrorCode;
using ddprun::Result;
using namespace ddprun::trainer;

Result<WeightedMean> validate(ProcessGroup& group, const Text& text, Gpt& gpt, int batch) {
    WeightedMean mean;
    std::vector<std::int64_t> windows;
    for (std::int64_t i = group.rank(); i < text.validation_windows(); i += group.size()) {
        windows.push_back(i);
        const bool last = i + group.size() >= text.validation_windows();
        if (!last && windows.size() < static_cast<std::size_t>(batch)) continue;
        auto loss = gpt.forward(text.validation(windows), 1);
        if (!loss) return loss.error();
        mean.add(*loss, static_cast<double>(windows.size()));
        windows.clear();
    }
    return mean_over_ranks(group, mean);
}

void GptTraining::begin() {
    if (!p_.options.snapshot_dir.empty()) resume();
    ReducerOptions options;
    options.bucket_bytes = static_cast<std::size_t>(p_.options.bucket_kib) << 10;
    // The first bucket is never larger than the others.
    options.first_bucket_bytes = std::min(options.first_bucket_bytes, options.bucket_bytes);
    // Also broadcasts rank 0's parameters and verifies that all ranks have the same.
    reducer_ = or_throw(GradientReducer::make(p_.group, p_.gpt.parameters(), options));
}

// Loads the newest snapshot, if there is one, and makes the writer for new ones.
void GptTraining::resume() {
    auto folder = open_folder();
    const auto timeout = std::chrono::seconds(p_.options.timeout_s);
    const auto snapshot = or_throw(ddprun::trainer::resume(p_.context, p_.store, folder, timeout));
    // The network computes on the default stream. step() lets AdamW come behind the copies.
    write_to(std::move(folder), GpuTensors{.stream = nullptr, .beside = true});
    writer_->prepare(views_of(tensors_of(p_.gpt)));
    if (!snapshot) return;
    const auto words = words_of(p_.sampler, p_.options.seed, p_.gpt.shape(), p_.text);
    or_throw(restore(*snapshot, words, p_.group.memory(), p_.gpt, p_.sampler));
    resumed_from(snapshot->manifest.name);
}

GptTraining::End GptTraining::run() {
    begin_steps();
    while (goes_on()) {
        step();
        end_step();
    }
    return end();
}

// This rank's windows of a step: several batches with accumulation, fewer at the end of an epoch.
// All ranks get equally many.
std::vector<Batch> GptTraining::deal() {
    if (p_.sampler.left() == 0) p_.sampler.next_epoch();
    std::vector<Batch> batches;
    for (int i = 0; i < p_.options.accumulate && p_.sampler.left() > 0; ++i)
        batches.push_back(p_.text.training(p_.sampler.next(p_.options.batch)));
    return batches;
}

// Forward and backward. Each window counts the same.
void GptTraining::compute(const std::vector<Batch>& batches) {
    int rows = 0;
    for (const auto& batch : batches) rows += batch.rows;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        const float share = static_cast<float>(batches[i].rows) / static_cast<float>(rows);
        count(or_throw(p_.gpt.forward(batches[i], share)), batches[i].rows);
        if (i + 1 == batches.size()) return or_throw(p_.gpt.backward(*reducer_));
        auto quiet = reducer_->no_sync();
        or_throw(p_.gpt.backward(*reducer_));
    }
}

void GptTraining::step() {
    or_throw(reducer_->zero());
    compute(deal());
    or_throw(reducer_->finish());
    // Without a limit the norm is only looked at.
    const double limit = p_.options.clip > 0 ? static_cast<double>(p_.options.clip) : INFINITY;
    // The norm is equal on all ranks, so all of them end here.
    if (!std::isfinite(or_throw(reducer_->clip(limit))))
        throw Failure(Error(ErrorCode::malformed, "the gradients of step " +
                                                      std::to_string(steps() + 1) +
                                                      " are not finite; try a lower --lr"));
    validated_.reset();
    AdamOptions options;
    options.rate = static_cast<float>(rate());
    options.decay = p_.options.decay;
    options.step = steps() + 1;
    // On a GPU a snapshot may still be copied, beside forward and backward.
    if (writer_) or_throw(writer_->before_change(nullptr));
    or_throw(p_.gpt.update(*reducer_, options));
    count(reducer_->times());
}

// Of the step that is under way.
double GptTraining::rate() const {
    const auto& o = p_.options;
    const Schedule schedule{static_cast<double>(o.rate), 0, static_cast<double>(o.warm_up),
                            static_cast<double>(o.steps), static_cast<double>(o.final_rate)};
    return rate_at(schedule, static_cast<double>(steps() + 1), 1);
}

// Every rank writes its share, while the next steps run.
void GptTraining::save() {
    or_throw(writer_->save(steps(), views_of(tensors_of(p_.gpt)),
                           words_of(p_.sampler, p_.options.seed, p_.gpt.shape(), p_.text)));
}

// All ranks know it, or none does.
std::optional<double> GptTraining::validate() {
    if (!validated_)
        validated_ =
            or_throw(gpt::validate(p_.group, p_.text, p_.gpt, p_.options.batch)).mean().value_or(0);
    return validated_;
}

std::string GptTraining::speed(double samples, double seconds) const {
    char text[48];
    std::snprintf(text, sizeof text, "tokens/s=%.0f", samples * p_.gpt.shape().context / seconds);
    return text;
}

void GptTraining::finish() {
    or_throw(verify_equal(p_.group, p_.gpt.parameters()));
    const double validation = validate().value_or(0);
    if (p_.context.is_first()) {
        const auto parameters = or_throw(parameters_on_host(p_.gpt, p_.group.memory()));
        const auto& vocabulary = p_.text.vocabulary();
        if (!p_.options.save.empty())
            or_throw(write_model(p_.options.save, p_.gpt.shape(), parameters, vocabulary));
        const std::string sample =
            or_throw(sample_text(p_.gpt, vocabulary, p_.options.sample, p_.options.seed));
        if (!sample.empty()) print("--- sample\n" + sample + "\n---");
        char line[96];
        std::snprintf(line, sizeof line, "validation=%.9g checksum=%s", validation,
                      checksum_of(std::as_bytes(std::span(parameters))).c_str());
        print(line);
    }
    // No rank leaves before rank 0 is done.
    or_throw(p_.group.barrier());
}

}  // namespace example::gpt
