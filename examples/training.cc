#include "examples/training.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "examples/train_state.h"
#include "trainer/snapshot/load/load_slices.h"
#include "trainer/training/agreement.h"
#include "trainer/training/schedule.h"
#include "trainer/worker/or_throw.h"

namespace example {

using namespace ddprun::trainer;

namespace {

constexpr std::size_t kValidation = 1024;  // samples; the first ones of the data

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
    auto folder = open_folder();
    const auto timeout = std::chrono::seconds(p_.options.timeout_s);
    const auto state = tensors();
    LoadOptions loading;
    // The default copy is memcpy, which cannot write to GPU memory.
    if (p_.group.memory() == Memory::gpu) loading.copy = copy_to_gpu();
    const auto loaded =
        or_throw(resume_into(p_.context, p_.store, folder, state, timeout, loading));
    // The network computes on the default stream. update() comes behind the copies.
    write_to(std::move(folder), GpuTensors{.stream = nullptr, .beside = true});
    // Allocates the writer's memory now, so that the first save() does not take longer than the
    // others.
    writer_->prepare(views_of(state));
    if (!loaded) return;
    restore(loaded->manifest, p_.options.seed, p_.sampler, early_);
    if (scaler_) or_throw(scaler_->state().resume(loaded->manifest.metadata));
    or_throw(verify_equal(p_.group, p_.mlp.parameters()));
    resumed_from(loaded->manifest.name);
}

// While it resumes there is no loader yet, which begins where the sampler is then.
SamplerPosition Training::position() const {
    return loader_ ? loader_->position() : p_.sampler.position();
}

std::int64_t Training::left() const { return loader_ ? loader_->left() : p_.sampler.left(); }

void Training::settle() {
    if (sharded_) or_throw(sharded_->wait());
}

// All ranks use the same numbers here, so they decide alike.
bool Training::ends_early() const {
    return p_.options.patience && early_.waited() > p_.options.patience;
}

Training::End Training::run() {
    begin_steps();
    while (goes_on()) {
        step();
        end_step();
    }
    return end();
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
    count(static_cast<double>(loss), static_cast<double>(batch.samples.size()));
    count(reducer().times());
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
    or_throw(writer_->save(steps(), views_of(tensors()), std::move(words)));
}

// Each rank takes its part of the first samples. The mean is exact also if they do not divide
// evenly.
std::optional<double> Training::validate() {
    const Batch mine = p_.data.head(kValidation, p_.context.rank.value, p_.context.world_size);
    WeightedMean mean;
    if (!mine.y.empty()) {
        const float loss = or_throw(p_.mlp.forward(mine.x, mine.y));
        mean.add(static_cast<double>(loss), static_cast<double>(mine.y.size()));
    }
    const auto validated = or_throw(mean_over_ranks(p_.group, mean)).mean();
    // Every rank updates its own copy with the same figure.
    (void)early_.update(validated.value_or(0));
    return validated;
}

std::string Training::speed(double samples, double seconds) const {
    std::string text = TrainingRun::speed(samples, seconds);
    if (!scaler_) return text;
    char scale[64];
    std::snprintf(scale, sizeof scale, " scale=%g skipped=%lld", scaler_->scale(),
                  static_cast<long long>(scaler_->state().skipped()));
    return text + scale;
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
