// The steps of a training, its reports, its snapshots, and its end.
#include "examples/gpt/gpt_training.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "examples/gpt/gpt_state.h"
#include "examples/gpt/model_file.h"
#include "examples/gpt/sample_text.h"
#include "examples/output_files.h"
#include "trainer/training/agreement.h"
#include "trainer/training/schedule.h"

namespace example::gpt {

using ddprun::Error;
using ddprun::ErrorCode;
using ddprun::Result;
using namespace ddprun::trainer;

namespace {

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

// A line on standard output, at once: it may be a pipe to the launcher, which would see it only at
// the end.
void print(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

}  // namespace

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

Result<void> GptTraining::begin() {
    if (!p_.options.snapshot_dir.empty())
        if (auto done = resume(); !done) return done;
    ReducerOptions options;
    options.bucket_bytes = static_cast<std::size_t>(p_.options.bucket_kib) << 10;
    // The first bucket is never larger than the others.
    options.first_bucket_bytes = std::min(options.first_bucket_bytes, options.bucket_bytes);
    // Also broadcasts rank 0's parameters and verifies that all ranks have the same.
    auto reducer = GradientReducer::make(p_.group, p_.gpt.parameters(), options);
    if (!reducer) return reducer.error();
    reducer_ = std::move(*reducer);
    return {};
}

// Loads the newest snapshot, if there is one, and makes the writer for new ones.
Result<void> GptTraining::resume() {
    auto folder = SnapshotFolder::open(
        p_.context, p_.options.snapshot_dir, static_cast<std::size_t>(p_.options.snapshot_keep),
        [](const std::string& text) { std::fprintf(stderr, "gpt: warning: %s\n", text.c_str()); });
    if (!folder) return folder.error();
    const auto timeout = std::chrono::seconds(p_.options.timeout_s);
    auto snapshot = ddprun::trainer::resume(p_.context, p_.store, *folder, timeout);
    if (!snapshot) return snapshot.error();
    WriterOptions options;
    options.goes_on_unsaved = true;
    // The network computes on the default stream. step() lets AdamW come behind the copies.
    if (p_.group.memory() == Memory::gpu)
        options.gpu = GpuTensors{.stream = nullptr, .beside = true};
    auto writer = SnapshotWriter::make(p_.context, p_.store, std::move(*folder), options);
    if (!writer) return writer.error();
    writer_ = std::move(*writer);
    writer_->prepare(views_of(tensors_of(p_.gpt)));
    if (!*snapshot) return {};
    const auto words = words_of(p_.sampler, p_.options.seed, p_.gpt.shape(), p_.text);
    auto done = restore(**snapshot, words, p_.group.memory(), p_.gpt, p_.sampler);
    if (!done) return done;
    step_ = saved_ = (*snapshot)->manifest.name.step;
    // The figures of the steps before are lost, so a mean that begins here says so.
    const auto every = p_.options.validate_every;
    if (every ? step_ % every != 0 : p_.sampler.position().consumed > 0 && p_.sampler.left() > 0)
        figures_.since = step_;
    if (p_.context.is_first())
        print("resumed from " + (*snapshot)->manifest.name.stem() + " at step " +
              std::to_string(step_));
    return {};
}

Result<GptTraining::End> GptTraining::run() {
    auto end = take_steps();
    if (!end && writer_) writer_->training_failed();
    return end;
}

// Every decision here follows from numbers that are equal on all ranks: the step, the options, the
// sampler's position, results of collective calls. So all ranks make the same calls.
Result<GptTraining::End> GptTraining::take_steps() {
    told_at_ = seconds_now();
    line_clock_.begin(told_at_);
    report();
    while (step_ < p_.options.steps) {
        crash_if_asked();
        if (auto done = step(); !done) return done.error();
        // Without a folder for snapshots, a request for one stays open.
        auto asked = asked_of_any(p_.group, {p_.stop.asked(), writer_ ? p_.snapshot.asked() : 0});
        if (!asked) return asked.error();
        const bool last = asked->stop || step_ == p_.options.steps;
        if (last || step_ % p_.options.log_every == 0)
            if (auto done = log_step(); !done) return done.error();
        const auto every = p_.options.validate_every;
        if (last || (every ? step_ % every == 0 : p_.sampler.left() == 0))
            if (auto done = tell_figures(); !done) return done.error();
        if (asked->snapshot > 0) p_.snapshot.begun(asked->snapshot);
        if (writer_ && (last || asked->snapshot > 0 || step_ % p_.options.snapshot_every == 0))
            if (auto done = save(); !done) return done.error();
        // The last snapshot must be on disk before the process ends.
        if (writer_ && last)
            if (auto done = writer_->wait(); !done) return done.error();
        report();
        if (asked->stop) return End::stopped;
    }
    return End::done;
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
Result<void> GptTraining::compute(const std::vector<Batch>& batches) {
    int rows = 0;
    for (const auto& batch : batches) rows += batch.rows;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        const float share = static_cast<float>(batches[i].rows) / static_cast<float>(rows);
        auto loss = p_.gpt.forward(batches[i], share);
        if (!loss) return loss.error();
        for (auto* mean : {&loss_, &recent_}) mean->add(*loss, batches[i].rows);
        if (i + 1 == batches.size()) return p_.gpt.backward(*reducer_);
        auto quiet = reducer_->no_sync();
        if (auto done = p_.gpt.backward(*reducer_); !done) return done;
    }
    return {};
}

Result<void> GptTraining::step() {
    if (auto done = reducer_->zero(); !done) return done;
    if (auto done = compute(deal()); !done) return done;
    if (auto done = reducer_->finish(); !done) return done;
    // Without a limit the norm is only looked at.
    const double limit = p_.options.clip > 0 ? static_cast<double>(p_.options.clip) : INFINITY;
    auto norm = reducer_->clip(limit);
    if (!norm) return norm.error();
    // The norm is equal on all ranks, so all of them end here.
    if (!std::isfinite(*norm))
        return Error(ErrorCode::malformed, "the gradients of step " + std::to_string(step_ + 1) +
                                               " are not finite; try a lower --lr");
    ++step_;
    validated_.reset();
    AdamOptions options;
    options.rate = static_cast<float>(rate());
    options.decay = p_.options.decay;
    options.step = step_;
    // On a GPU a snapshot may still be copied, beside forward and backward.
    if (writer_)
        if (auto done = writer_->before_change(nullptr); !done) return done;
    if (auto done = p_.gpt.update(*reducer_, options); !done) return done;
    figures_.communication += seconds(reducer_->times().communication);
    figures_.waited += seconds(reducer_->times().waited);
    return {};
}

// Of this step, which step_ counts already.
double GptTraining::rate() const {
    const auto& o = p_.options;
    const Schedule schedule{static_cast<double>(o.rate), 0, static_cast<double>(o.warm_up),
                            static_cast<double>(o.steps), static_cast<double>(o.final_rate)};
    return rate_at(schedule, static_cast<double>(step_), 1);
}

// Every rank writes its share, while the next steps run.
Result<void> GptTraining::save() {
    return writer_->save(step_, views_of(tensors_of(p_.gpt)),
                         words_of(p_.sampler, p_.options.seed, p_.gpt.shape(), p_.text));
}

// All ranks know it, or none does.
Result<double> GptTraining::validated() {
    if (!validated_) {
        auto mean = validate(p_.group, p_.text, p_.gpt, p_.options.batch);
        if (!mean) return mean.error();
        validated_ = mean->mean().value_or(0);
    }
    return *validated_;
}

// The figures of all ranks since the last call. Rank 0 prints them. Times are those of the slowest
// rank, because the others wait for it.
Result<void> GptTraining::tell_figures() {
    const double begun = seconds_now();
    auto trained = mean_over_ranks(p_.group, loss_);
    if (!trained) return trained.error();
    double slowest[] = {figures_.communication, figures_.waited, begun - told_at_};
    if (auto done = p_.group.all_reduce_values(slowest, ReduceOp::max); !done) return done;
    auto validation = validated();
    if (!validation) return validation.error();
    figures_.epoch = p_.sampler.position().epoch;
    figures_.step = step_;
    figures_.world = p_.context.world_size;
    figures_.loss = trained->mean().value_or(0);
    figures_.validation = *validation;
    figures_.samples = trained->weight();
    figures_.communication = slowest[0];
    figures_.waited = slowest[1];
    figures_.seconds = slowest[2];
    if (p_.context.is_first()) {
        print(line_of(figures_));
        add_metrics("gpt", p_.options.metrics, json_of(figures_));
    }
    figures_ = {};
    loss_ = {};
    told_at_ = seconds_now();
    line_clock_.leave_out(told_at_ - begun);
    return {};
}

// A line of progress: the mean loss over all ranks since the last line.
Result<void> GptTraining::log_step() {
    auto mean = mean_over_ranks(p_.group, recent_);
    if (!mean) return mean.error();
    recent_ = {};
    const double trained = line_clock_.lap(seconds_now());
    const double tokens = mean->weight() * p_.gpt.shape().context;
    char line[96];
    std::snprintf(line, sizeof line, "step=%lld loss=%.6f tokens/s=%.0f",
                  static_cast<long long>(step_), mean->mean().value_or(0), tokens / trained);
    if (p_.context.is_first()) print(line);
    return {};
}

// Tells the launcher the step and the newest snapshot: our own newest, else the one that was
// loaded.
void GptTraining::report() {
    const auto newest = writer_ ? writer_->newest() : SnapshotWriter::Newest{};
    const bool own = newest.step >= 0;
    p_.progress.report(step_, own ? newest.step : saved_, own ? newest.duration.count() : -1,
                       writer_ ? writer_->held().count() : -1);
}

// For tests and demonstrations of a restart. Only in the first generation, or the job would never
// end.
void GptTraining::crash_if_asked() {
    if (p_.context.generation.value != 0 || step_ != p_.options.crash_at_step ||
        p_.context.rank.value != p_.options.crash_rank)
        return;
    // So that it is certain from which snapshot the next generation resumes.
    if (writer_) (void)writer_->wait();
    std::fprintf(stderr, "gpt: rank %d crashes on purpose before step %lld\n",
                 p_.context.rank.value, static_cast<long long>(step_));
    (void)raise(SIGKILL);
}

Result<void> GptTraining::finish() {
    if (auto same = verify_equal(p_.group, p_.gpt.parameters()); !same) return same;
    auto validation = validated();
    if (!validation) return validation.error();
    if (p_.context.is_first()) {
        auto parameters = parameters_on_host(p_.gpt, p_.group.memory());
        if (!parameters) return parameters.error();
        if (!p_.options.save.empty()) {
            auto written =
                write_model(p_.options.save, p_.gpt.shape(), *parameters, p_.text.vocabulary());
            if (!written) return written;
        }
        auto sample = sample_text(p_.gpt, p_.text.vocabulary(), p_.options.sample, p_.options.seed);
        if (!sample) return sample.error();
        if (!sample->empty()) print("--- sample\n" + *sample + "\n---");
        char line[96];
        std::snprintf(line, sizeof line, "validation=%.9g checksum=%s", *validation,
                      checksum_of(std::as_bytes(std::span(*parameters))).c_str());
        print(line);
    }
    // No rank leaves before rank 0 is done.
    return p_.group.barrier();
}

}  // namespace example::gpt
