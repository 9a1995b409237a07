// The steps of a training, its reports, its snapshots, and its result.
#include "examples/training.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "examples/train_state.h"
#include "trainer/training/agreement.h"
#include "trainer/training/schedule.h"
#include "trainer/worker/or_throw.h"

namespace example {

using namespace ddprun::trainer;

namespace {

constexpr std::size_t kValidation = 1024;  // samples; the first ones of the data

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace

void Training::begin() {
    if (!p_.options.snapshot_dir.empty()) resume();
    ReducerOptions options;
    options.bucket_bytes = static_cast<std::size_t>(p_.options.bucket_kib) << 10;
    // The first bucket is never larger than the others.
    options.first_bucket_bytes = std::min(options.first_bucket_bytes, options.bucket_bytes);
    // On a GPU the search waits for its result, and so delays the kernels of backward.
    options.find_not_finite = p_.group.memory() == Memory::host;
    // Also broadcasts rank 0's parameters and verifies that all ranks have the same.
    reducer_ = or_throw(GradientReducer::make(p_.group, p_.mlp.parameters(), options));
}

// Loads the newest snapshot, if there is one, and makes the writer for new ones.
void Training::resume() {
    auto folder = or_throw(SnapshotFolder::open(
        p_.context, p_.options.snapshot_dir, static_cast<std::size_t>(p_.options.snapshot_keep),
        [](const std::string& text) {
            std::fprintf(stderr, "train: warning: %s\n", text.c_str());
        }));
    const auto timeout = std::chrono::seconds(p_.options.timeout_s);
    const auto snapshot = or_throw(ddprun::trainer::resume(p_.context, p_.store, folder, timeout));
    WriterOptions options;
    // The default copy is memcpy, which cannot read GPU memory.
    if (p_.group.memory() == Memory::gpu) options.copy = copy_from_gpu();
    writer_ = or_throw(SnapshotWriter::make(p_.context, p_.store, std::move(folder), options));
    // Allocates the writer's memory now, so that the first save() does not take longer than the
    // others.
    writer_->prepare(views_of(tensors_of(p_.mlp)));
    if (!snapshot) return;
    restore(*snapshot, p_.options.seed, p_.group.memory(), p_.mlp, p_.sampler, early_);
    step_ = saved_ = snapshot->manifest.name.step;
    // The figures of the steps before are lost, so a mean that begins here says so.
    const auto every = p_.options.validate_every;
    if (every ? step_ % every != 0 : p_.sampler.position().consumed > 0 && p_.sampler.left() > 0)
        figures_.since = step_;
    if (p_.context.is_first()) {
        std::printf("resumed from %s at step %lld\n", snapshot->manifest.name.stem().c_str(),
                    static_cast<long long>(step_));
        std::fflush(stdout);
    }
}

// All ranks use the same numbers here, so they decide alike.
bool Training::done() const {
    return step_ >= p_.options.steps ||
           (p_.options.patience && early_.waited() > p_.options.patience);
}

// Every decision here follows from numbers that are equal on all ranks: the step, the options, the
// sampler's position, results of collective calls. So all ranks make the same calls.
Training::End Training::run() {
    told_at_ = logged_at_ = seconds_now();
    report();
    while (!done()) {
        crash_if_asked();
        step();
        // Without a folder for snapshots, a request for one stays open.
        const auto asked =
            or_throw(asked_of_any(p_.group, {p_.stop.asked(), writer_ ? p_.snapshot.asked() : 0}));
        const bool last = asked.stop || step_ == p_.options.steps;
        if (last || step_ % p_.options.log_every == 0) log_step();
        const auto every = p_.options.validate_every;
        if (last || (every ? step_ % every == 0 : p_.sampler.left() == 0)) tell_figures();
        if (asked.snapshot > 0) p_.snapshot.begun(asked.snapshot);
        if (writer_ &&
            (last || done() || asked.snapshot > 0 || step_ % p_.options.snapshot_every == 0))
            save();
        // The last snapshot must be on disk before the process ends.
        if (writer_ && (last || done())) or_throw(writer_->wait());
        report();
        if (asked.stop) return End::stopped;
    }
    return End::done;
}

void Training::step() {
    // Makes steps longer for tests and demonstrations.
    if (p_.options.step_time_ms)
        std::this_thread::sleep_for(std::chrono::milliseconds(p_.options.step_time_ms));
    if (p_.sampler.left() == 0) p_.sampler.next_epoch();
    // Before next(), which moves the sampler's position: the rate belongs to the start of the step.
    const double rate_now = rate();
    const Batch batch = p_.data.batch(p_.sampler.next(p_.options.batch));
    or_throw(reducer_->zero());
    const float loss = or_throw(p_.mlp.forward(batch.x, batch.y));
    or_throw(p_.mlp.backward(*reducer_));
    or_throw(reducer_->finish());
    if (p_.options.clip > 0) or_throw(reducer_->clip(static_cast<double>(p_.options.clip)));
    or_throw(p_.mlp.update(*reducer_, static_cast<float>(rate_now), p_.options.momentum));
    ++step_;
    const auto samples = static_cast<double>(batch.y.size());
    // Two means of one loss, because both reports begin anew at different times.
    for (auto* mean : {&loss_, &recent_}) mean->add(static_cast<double>(loss), samples);
    figures_.communication += seconds(reducer_->times().communication);
    figures_.waited += seconds(reducer_->times().waited);
}

// The position is in epochs, so the schedule does not depend on the number of ranks.
double Training::rate() const {
    const auto& o = p_.options;
    const Schedule schedule{static_cast<double>(o.rate), static_cast<double>(o.reference_batch),
                            static_cast<double>(o.warm_up), static_cast<double>(o.cosine_end), 0};
    const auto at = p_.sampler.position();
    const double epochs = static_cast<double>(at.epoch) +
                          static_cast<double>(at.consumed) / static_cast<double>(p_.data.size());
    return rate_at(schedule, epochs, static_cast<double>(o.batch) * p_.context.world_size);
}

// Every rank writes its share, while the next steps run.
void Training::save() {
    or_throw(writer_->save(step_, views_of(tensors_of(p_.mlp)),
                           words_of(p_.sampler, early_, p_.options.seed)));
}

// Each rank takes its part of the first samples. The mean is exact also if they do not divide
// evenly.
WeightedMean Training::validation() {
    const Batch mine = p_.data.head(kValidation, p_.context.rank.value, p_.context.world_size);
    WeightedMean mean;
    if (!mine.y.empty()) {
        const float loss = or_throw(p_.mlp.forward(mine.x, mine.y));
        mean.add(static_cast<double>(loss), static_cast<double>(mine.y.size()));
    }
    return or_throw(mean_over_ranks(p_.group, mean));
}

// The figures of all ranks since the last call. Rank 0 prints them. Times are those of the slowest
// rank, because the others wait for it.
void Training::tell_figures() {
    const auto trained = or_throw(mean_over_ranks(p_.group, loss_));
    double slowest[] = {figures_.communication, figures_.waited, seconds_now() - told_at_};
    or_throw(p_.group.all_reduce_values(slowest, ReduceOp::max));
    const auto validated = validation();
    figures_.epoch = p_.sampler.position().epoch;
    figures_.step = step_;
    figures_.world = p_.context.world_size;
    figures_.loss = trained.mean().value_or(0);
    figures_.validation = validated.mean();
    figures_.samples = trained.weight();
    figures_.communication = slowest[0];
    figures_.waited = slowest[1];
    figures_.seconds = slowest[2];
    // Every rank updates its own copy with the same figure. done() reads it.
    (void)early_.update(validated.mean().value_or(0));
    if (p_.context.is_first()) {
        std::printf("%s\n", line_of(figures_).c_str());
        std::fflush(stdout);
        if (!p_.options.metrics.empty())
            std::ofstream(p_.options.metrics, std::ios::app) << json_of(figures_) << "\n";
    }
    figures_ = {};
    loss_ = {};
    told_at_ = seconds_now();
}

// A line of progress: the mean loss over all ranks since the last line.
void Training::log_step() {
    const auto mean = or_throw(mean_over_ranks(p_.group, recent_));
    recent_ = {};
    if (!p_.context.is_first()) return;
    const double now = seconds_now();
    std::printf("step=%lld loss=%.6f samples/s=%.0f\n", static_cast<long long>(step_),
                mean.mean().value_or(0), mean.weight() / std::max(now - logged_at_, 1e-9));
    std::fflush(stdout);
    logged_at_ = now;
}

// Tells the launcher the step and the newest snapshot: our own newest, else the one that was
// loaded.
void Training::report() {
    const auto newest = writer_ ? writer_->newest() : SnapshotWriter::Newest{};
    const bool own = newest.step >= 0;
    p_.progress.report(step_, own ? newest.step : saved_, own ? newest.duration.count() : -1,
                       writer_ ? writer_->held().count() : -1);
}

// For tests and demonstrations of a restart. Only in the first generation, or the job would never
// end.
void Training::crash_if_asked() {
    if (p_.context.generation.value != 0 || step_ != p_.options.crash_at_step ||
        p_.context.rank.value != p_.options.crash_rank) {
        return;
    }
    // So that it is certain from which snapshot the next generation resumes.
    if (writer_) (void)writer_->wait();
    std::fprintf(stderr, "train: rank %d crashes on purpose before step %lld\n",
                 p_.context.rank.value, static_cast<long long>(step_));
    // _exit(): no destructor runs, as in a real crash.
    if (p_.options.crash_exit >= 0) _exit(p_.options.crash_exit);
    // StopRequest handles SIGTERM; here the signal has to end the process.
    (void)signal(p_.options.crash_signal, SIG_DFL);
    (void)raise(p_.options.crash_signal);
}

std::string Training::result() {
    or_throw(verify_equal(p_.group, p_.mlp.parameters()));
    const auto parameters = parameters_on_host(p_.mlp, p_.group.memory());
    // Each rank computes the loss of the same samples with the same parameters. Nothing is sent,
    // and the sum has the same order for every world size.
    const Batch batch = p_.data.head(kValidation, 0, 1);
    const float loss = or_throw(p_.mlp.forward(batch.x, batch.y));
    char text[96];
    std::snprintf(text, sizeof text, "loss=%.9g checksum=%s", static_cast<double>(loss),
                  checksum_of(std::as_bytes(std::span(parameters))).c_str());
    // No rank leaves before all have compared their parameters.
    or_throw(p_.group.barrier());
    return text;
}

}  // namespace example
