// The steps of a training, its reports, its snapshots, and its result.
#include "examples/training.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "examples/output_files.h"
#include "examples/train_state.h"
#include "trainer/snapshot/load_slices.h"
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

std::span<float> floats_in(std::span<std::byte> bytes) {
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}
std::span<const float> floats_in(const Buffer& buffer) {
    return {static_cast<const float*>(buffer.data), buffer.count};
}

}  // namespace

void Training::begin() {
    make_optimizer();
    if (!p_.options.snapshot_dir.empty()) resume();
    loader_ = make_loader();
}

// Before a snapshot is loaded: how the state is shared out says what each rank needs of it.
void Training::make_optimizer() {
    ReducerOptions options;
    // The same sums with --zero=1 and without.
    options.shards = static_cast<std::size_t>(p_.context.world_size);
    options.verify_replicas.every = p_.options.verify_replicas;
    options.bucket_bytes = static_cast<std::size_t>(p_.options.bucket_kib) << 10;
    // The first bucket is never larger than the others.
    options.first_bucket_bytes = std::min(options.first_bucket_bytes, options.bucket_bytes);
    // On a GPU the search waits for its result, and so delays the kernels of backward.
    // With a scaled loss such gradients are no error, the step is skipped.
    const auto dtype = p_.options.dtype;
    options.find_not_finite = p_.group.memory() == Memory::host && dtype != DataType::float16;
    // Both also broadcast rank 0's parameters and verify that all ranks have the same.
    if (p_.options.zero) {
        sharded_ = or_throw(ShardedOptimizer::make(
            p_.group, p_.mlp.parameters(), OptimizerRule::sgd(p_.options.momentum), options));
        if (p_.context.is_first())
            std::printf("zero=1: rank 0 has %llu of %llu bytes of the optimizer's state\n",
                        static_cast<unsigned long long>(sharded_->state_bytes()),
                        static_cast<unsigned long long>(sharded_->whole_state_bytes()));
        return;
    }
    reducer_ = or_throw(GradientReducer::make(p_.group, p_.mlp.parameters(), options));
    if (dtype != DataType::float32)
        masters_ = or_throw(
            MasterWeights::make(p_.group.memory(), p_.mlp.parameters(), reducer_->gradients()));
    if (dtype == DataType::float16)
        scaler_ = or_throw(GradientScaler::make(p_.group, {{.initial = p_.options.loss_scale}}));
}

// Begins at the position to which resume() has brought the sampler.
std::unique_ptr<DataLoader> Training::make_loader() {
    LoaderOptions options;
    options.batch = p_.options.batch;
    options.threads = p_.options.loader_threads;
    const auto inputs = static_cast<std::size_t>(p_.data.inputs());
    const auto load = [data = &p_.data](const Sample& sample,
                                        const SampleMemory& to) -> ddprun::Result<void> {
        data->copy(sample.index, floats_in(to[0]), floats_in(to[1]).front());
        return {};
    };
    return or_throw(DataLoader::make(
        p_.sampler, {{DataType::float32, inputs}, {DataType::float32, 1}}, load, options));
}

std::vector<Tensor> Training::tensors() {
    return tensors_of(p_.mlp, masters_ ? &*masters_ : nullptr, sharded_.get());
}

GradientReducer& Training::reducer() { return sharded_ ? sharded_->reducer() : *reducer_; }

// Loads the newest snapshot, if there is one, and makes the writer for new ones.
void Training::resume() {
    auto folder = or_throw(SnapshotFolder::open(
        p_.context, p_.options.snapshot_dir, static_cast<std::size_t>(p_.options.snapshot_keep),
        [](const std::string& text) {
            std::fprintf(stderr, "train: warning: %s\n", text.c_str());
        }));
    const auto timeout = std::chrono::seconds(p_.options.timeout_s);
    const auto state = tensors();
    LoadOptions loading;
    // The default copy is memcpy, which cannot write to GPU memory.
    if (p_.group.memory() == Memory::gpu) loading.copy = copy_to_gpu();
    const auto loaded =
        or_throw(resume_into(p_.context, p_.store, folder, state, timeout, loading));
    WriterOptions options;
    options.goes_on_unsaved = true;
    // The network computes on the default stream. update() comes behind the copies.
    if (p_.group.memory() == Memory::gpu)
        options.gpu = GpuTensors{.stream = nullptr, .beside = true};
    writer_ = or_throw(SnapshotWriter::make(p_.context, p_.store, std::move(folder), options));
    // Allocates the writer's memory now, so that the first save() does not take longer than the
    // others.
    writer_->prepare(views_of(state));
    if (!loaded) return;
    restore(loaded->manifest, p_.options.seed, p_.sampler, early_);
    if (scaler_) or_throw(scaler_->state().resume(loaded->manifest.metadata));
    or_throw(verify_equal(p_.group, p_.mlp.parameters()));
    step_ = saved_ = loaded->manifest.name.step;
    // The figures of the steps before are lost, so a mean that begins here says so.
    const auto every = p_.options.validate_every;
    if (every ? step_ % every != 0 : p_.sampler.position().consumed > 0 && p_.sampler.left() > 0)
        figures_.since = step_;
    if (p_.context.is_first()) {
        std::printf("resumed from %s at step %lld\n", loaded->manifest.name.stem().c_str(),
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
    told_at_ = seconds_now();
    line_clock_.begin(told_at_);
    report();
    while (!done()) {
        crash_if_asked();
        step();
        // Without a folder for snapshots, a request for one stays open.
        const auto asked =
            or_throw(asked_of_any(p_.group, {p_.stop.asked(), writer_ ? p_.snapshot.asked() : 0}));
        // From here on the parameters are looked at.
        if (sharded_) or_throw(sharded_->wait());
        const bool last = asked.stop || step_ == p_.options.steps;
        if (last || step_ % p_.options.log_every == 0) log_step();
        const auto every = p_.options.validate_every;
        if (last || (every ? step_ % every == 0 : loader_->left() == 0)) tell_figures();
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
    if (loader_->left() == 0) loader_->next_epoch();
    // Before next(), which moves the loader's position: the rate belongs to the start of the step.
    const double rate_now = rate();
    const auto batch = or_throw(loader_->next());
    or_throw(reducer().zero());
    const float loss =
        or_throw(p_.mlp.forward(floats_in(batch.fields[0]), floats_in(batch.fields[1])));
    or_throw(p_.mlp.backward(reducer(), scaler_ ? static_cast<float>(scaler_->scale()) : 1.0f));
    or_throw(reducer().finish());
    update(static_cast<float>(rate_now));
    ++step_;
    const auto samples = static_cast<double>(batch.samples.size());
    // Two means of one loss, because both reports begin anew at different times.
    for (auto* mean : {&loss_, &recent_}) mean->add(static_cast<double>(loss), samples);
    figures_.communication += seconds(reducer().times().communication);
    figures_.waited += seconds(reducer().times().waited);
}

// Clipping and the optimizer. A step whose gradients overflowed in float16 changes nothing.
void Training::update(float rate) {
    const double clip = static_cast<double>(p_.options.clip);
    const float momentum = p_.options.momentum;
    // On a GPU a snapshot may still be copied, beside forward and backward.
    if (writer_) or_throw(writer_->before_change(nullptr));
    if (!masters_) {
        if (clip > 0) or_throw(reducer().clip(clip));
        if (sharded_) return or_throw(sharded_->step(rate));
        or_throw(p_.mlp.update(p_.mlp.parameters(), reducer_->gradients(), rate, momentum));
        return;
    }
    or_throw(masters_->take_gradients());
    if (scaler_ && !or_throw(scaler_->unscale(masters_->gradients()))) return;
    if (clip > 0) or_throw(masters_->clip(clip));
    or_throw(p_.mlp.update(masters_->weights(), masters_->gradients(), rate, momentum));
    or_throw(masters_->publish());
}

// The position is in epochs, so the schedule does not depend on the number of ranks.
double Training::rate() const {
    const auto& o = p_.options;
    const Schedule schedule{static_cast<double>(o.rate), static_cast<double>(o.reference_batch),
                            static_cast<double>(o.warm_up), static_cast<double>(o.cosine_end), 0};
    const auto at = loader_->position();
    const double epochs = static_cast<double>(at.epoch) +
                          static_cast<double>(at.consumed) / static_cast<double>(p_.data.size());
    return rate_at(schedule, epochs, static_cast<double>(o.batch) * p_.context.world_size);
}

// Every rank writes its share, while the next steps run.
void Training::save() {
    auto words = words_of(loader_->position(), early_, p_.options.seed);
    if (scaler_) words.merge(scaler_->state().words());
    or_throw(writer_->save(step_, views_of(tensors()), std::move(words)));
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
    const double begun = seconds_now();
    const auto trained = or_throw(mean_over_ranks(p_.group, loss_));
    double slowest[] = {figures_.communication, figures_.waited, begun - told_at_};
    or_throw(p_.group.all_reduce_values(slowest, ReduceOp::max));
    const auto validated = validation();
    figures_.epoch = loader_->position().epoch;
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
        add_metrics("train", p_.options.metrics, json_of(figures_));
    }
    figures_ = {};
    loss_ = {};
    told_at_ = seconds_now();
    line_clock_.leave_out(told_at_ - begun);
}

// A line of progress: the mean loss over all ranks since the last line.
void Training::log_step() {
    const auto mean = or_throw(mean_over_ranks(p_.group, recent_));
    recent_ = {};
    if (!p_.context.is_first()) return;
    std::printf("step=%lld loss=%.6f samples/s=%.0f", static_cast<long long>(step_),
                mean.mean().value_or(0), mean.weight() / line_clock_.lap(seconds_now()));
    if (scaler_)
        std::printf(" scale=%g skipped=%lld", scaler_->scale(),
                    static_cast<long long>(scaler_->state().skipped()));
    std::printf("\n");
    std::fflush(stdout);
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
                  checksum_of(parameters).c_str());
    // No rank leaves before all have compared their parameters.
    or_throw(p_.group.barrier());
    return text;
}

}  // namespace example
