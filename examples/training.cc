#include "examples/training.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "trainer/agreement.h"

namespace example {

using ddprun::Error;
using ddprun::ErrorCode;
using ddprun::Result;
using namespace ddprun::trainer;

namespace {

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Result<std::span<const float>> floats(const Snapshot& snapshot, const char* name,
                                      std::size_t count) {
    const TensorView* tensor = snapshot.content.find(name);
    if (!tensor || tensor->type != DataType::float32 ||
        tensor->data.size() != count * sizeof(float)) {
        return Error(ErrorCode::usage,
                     "snapshot " + snapshot.manifest.name.stem() + " has no \"" + name + "\" of " +
                         std::to_string(count) +
                         " floats; was it written with other --hidden or --data?");
    }
    return std::span(reinterpret_cast<const float*>(tensor->data.data()), count);
}

Result<std::int64_t> counter(const Snapshot& snapshot, const char* key) {
    auto it = snapshot.manifest.metadata.find(key);
    std::int64_t value = 0;
    if (it != snapshot.manifest.metadata.end()) {
        const std::string& text = it->second;
        auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (problem == std::errc{} && stop == text.data() + text.size()) return value;
    }
    return Error(ErrorCode::usage,
                 "snapshot " + snapshot.manifest.name.stem() + " has no number \"" + key + "\"");
}

}  // namespace

Result<void> Training::begin() {
    const std::size_t count = p_.shape.parameters();
    const auto first = initial_parameters(p_.shape, p_.options.seed);
    if (auto done = p_.mlp.restore(first, std::vector<float>(count)); !done) return done;
    if (p_.options.snapshot_dir.empty()) return {};
    auto folder = SnapshotFolder::open(
        p_.context, p_.options.snapshot_dir, static_cast<std::size_t>(p_.options.snapshot_keep),
        [](const std::string& text) {
            std::fprintf(stderr, "train: warning: %s\n", text.c_str());
        });
    if (!folder) return folder.error();
    auto snapshot =
        resume(p_.context, p_.store, *folder, std::chrono::seconds(p_.options.timeout_s));
    if (!snapshot) return snapshot.error();
    auto writer = SnapshotWriter::make(p_.context, p_.store, std::move(*folder));
    if (!writer) return writer.error();
    writer_ = std::move(*writer);
    return *snapshot ? restore(**snapshot) : Result<void>();
}

Result<void> Training::restore(const Snapshot& snapshot) {
    const std::size_t count = p_.shape.parameters();
    auto parameters = floats(snapshot, "parameters", count);
    if (!parameters) return parameters.error();
    auto momentum = floats(snapshot, "momentum", count);
    if (!momentum) return momentum.error();
    auto consumed = counter(snapshot, "consumed");
    if (!consumed) return consumed.error();
    auto seed = snapshot.manifest.metadata.find("seed");
    if (seed == snapshot.manifest.metadata.end() ||
        seed->second != std::to_string(p_.options.seed)) {
        return Error(ErrorCode::usage, "snapshot " + snapshot.manifest.name.stem() +
                                           " was written with another --seed");
    }
    step_ = saved_ = snapshot.manifest.name.step;
    consumed_ = *consumed;
    if (p_.context.is_first()) {
        std::printf("resumed from %s at step %lld\n", snapshot.manifest.name.stem().c_str(),
                    static_cast<long long>(step_));
        std::fflush(stdout);
    }
    return p_.mlp.restore(*parameters, *momentum);
}

Result<Training::End> Training::run() {
    logged_at_ = seconds_now();
    logged_step_ = step_;
    validated_at_ = logged_at_;
    report();
    while (step_ < p_.options.steps) {
        crash_if_asked();
        auto stop = step();
        if (!stop) return stop.error();
        const bool last = *stop || step_ == p_.options.steps;
        if (writer_ && (last || step_ % p_.options.snapshot_every == 0)) {
            if (auto done = save(); !done) return done.error();
        }
        if (p_.options.validate_every && (last || step_ % p_.options.validate_every == 0)) {
            if (auto done = validate(); !done) return done.error();
        }
        // The last one must be on disk before the process ends.
        if (writer_ && last) {
            if (auto done = writer_->wait(); !done) return done.error();
        }
        report();
        if (*stop) return End::stopped;
    }
    return End::done;
}

void Training::report() {
    const auto newest = writer_ ? writer_->newest() : SnapshotWriter::Newest{};
    const bool own = newest.step >= 0;
    p_.progress.report(step_, own ? newest.step : saved_, own ? newest.duration.count() : -1);
}

// Each rank takes its part of the first samples; the mean is exact however they divide.
Result<void> Training::validate() {
    const Batch all = p_.data.head(1024);
    const auto inputs = static_cast<std::size_t>(p_.data.inputs());
    const auto world = static_cast<std::size_t>(p_.context.world_size);
    Batch mine;
    for (auto i = static_cast<std::size_t>(p_.context.rank.value); i < all.y.size(); i += world) {
        mine.x.insert(mine.x.end(), &all.x[i * inputs], &all.x[i * inputs] + inputs);
        mine.y.push_back(all.y[i]);
    }
    WeightedMean mean;
    if (!mine.y.empty()) {
        if (auto done = p_.mlp.compute(mine.x, mine.y, 0); !done) return done;
        auto tail = p_.mlp.tail();
        if (!tail) return tail.error();
        mean.add(static_cast<double>(tail->loss), static_cast<double>(mine.y.size()));
    }
    auto agreed = mean_over_ranks(p_.group, mean);
    if (!agreed) return agreed.error();
    const double now = seconds_now();
    figures_.validation = agreed->mean();
    figures_.step = step_;
    figures_.world = p_.context.world_size;
    figures_.seconds = now - validated_at_;
    if (p_.context.is_first()) {
        std::printf("%s\n", line_of(figures_).c_str());
        std::fflush(stdout);
        if (!p_.options.metrics.empty())
            std::ofstream(p_.options.metrics, std::ios::app) << json_of(figures_) << "\n";
    }
    const std::int64_t next = figures_.epoch + 1;
    figures_ = {};
    figures_.epoch = next;
    validated_at_ = now;
    return {};
}

// The wish to stop travels with the gradients, so that all ranks stop after the same step.
Result<bool> Training::step() {
    const int world = p_.context.world_size;
    if (p_.options.step_time_ms)
        std::this_thread::sleep_for(std::chrono::milliseconds(p_.options.step_time_ms));
    const Batch batch = p_.data.batch(consumed_, p_.options.batch, p_.context.rank.value, world);
    if (auto done = p_.mlp.compute(batch.x, batch.y, p_.stop_asked ? 1.0f : 0.0f); !done)
        return done.error();
    const double begun = seconds_now();
    if (auto done = p_.group.all_reduce(p_.mlp.gradients(), ReduceOp::avg); !done)
        return done.error();
    const double waited = seconds_now() - begun;
    figures_.communication += waited;
    figures_.waited += waited;
    auto tail = p_.mlp.tail();
    if (!tail) return tail.error();
    if (auto done = p_.mlp.update(p_.options.rate, p_.options.momentum); !done) return done.error();
    ++step_;
    consumed_ += static_cast<std::int64_t>(p_.options.batch) * world;
    figures_.samples += static_cast<double>(p_.options.batch) * world;
    figures_.loss = static_cast<double>(tail->loss);
    log_step(tail->loss);
    return tail->flag > 0;
}

// Every rank writes its share while the next steps go on.
Result<void> Training::save() {
    auto parameters = p_.mlp.parameters();
    if (!parameters) return parameters.error();
    auto momentum = p_.mlp.momentum();
    if (!momentum) return momentum.error();
    const std::vector<std::uint64_t> shape{parameters->size()};
    return writer_->save(
        step_,
        {tensor_view("parameters", shape, std::span<const float>(*parameters)),
         tensor_view("momentum", shape, std::span<const float>(*momentum))},
        {{"consumed", std::to_string(consumed_)}, {"seed", std::to_string(p_.options.seed)}});
}

void Training::crash_if_asked() {
    if (p_.context.generation.value != 0 || step_ != p_.options.crash_at_step ||
        p_.context.rank.value != p_.options.crash_rank) {
        return;
    }
    // So that it is known from which snapshot the next generation resumes.
    if (writer_) (void)writer_->wait();
    std::fprintf(stderr, "train: rank %d crashes on purpose before step %lld\n",
                 p_.context.rank.value, static_cast<long long>(step_));
    if (p_.options.crash_exit >= 0) _exit(p_.options.crash_exit);
    (void)signal(p_.options.crash_signal, SIG_DFL);
    (void)raise(p_.options.crash_signal);
}

void Training::log_step(float loss) {
    if (!p_.context.is_first() || (step_ % p_.options.log_every && step_ != p_.options.steps))
        return;
    const double now = seconds_now();
    const double samples =
        static_cast<double>(step_ - logged_step_) * p_.options.batch * p_.context.world_size;
    std::printf("step=%lld loss=%.6f samples/s=%.0f\n", static_cast<long long>(step_),
                static_cast<double>(loss), samples / std::max(now - logged_at_, 1e-9));
    std::fflush(stdout);
    logged_at_ = now;
    logged_step_ = step_;
}

namespace {

// Whether all ranks hold the same bits. Through the store: the group may only take GPU memory.
Result<void> compare(const Context& context, Store& store, const std::string& checksum,
                     std::chrono::milliseconds timeout) {
    if (context.is_first()) return store.set("train/checksum", checksum);
    auto first = store.get("train/checksum", timeout);
    if (!first) return first.error();
    if (*first == checksum) return {};
    return Error(ErrorCode::internal, "rank " + std::to_string(context.rank.value) +
                                          " ends with parameters " + checksum + ", rank 0 with " +
                                          *first);
}

}  // namespace

Result<std::string> Training::result() {
    auto parameters = p_.mlp.parameters();
    if (!parameters) return parameters.error();
    const std::string checksum = checksum_of(std::as_bytes(std::span(*parameters)));
    auto same = compare(p_.context, p_.store, checksum, std::chrono::seconds(p_.options.timeout_s));
    if (!same) return same.error();
    // Each rank computes the loss of the same samples with the same parameters; nothing needs to be
    // sent.
    const Batch batch = p_.data.head(1024);
    if (auto done = p_.mlp.compute(batch.x, batch.y, 0); !done) return done.error();
    auto tail = p_.mlp.tail();
    if (!tail) return tail.error();
    char text[96];
    std::snprintf(text, sizeof text, "loss=%.9g checksum=%s", static_cast<double>(tail->loss),
                  checksum.c_str());
    // Nobody leaves before all have compared.
    if (auto done = p_.group.barrier(); !done) return done.error();
    return std::string(text);
}

}  // namespace example
