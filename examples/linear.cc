// linear: linear regression y = w x + b with 20 inputs and 2,048 samples, as a complete distributed
// training: validation over ranks, snapshots, metrics, resume, and a stop on which all ranks agree.
// The lines marked (*) are there only because the program is distributed.
//
//   linear [EPOCHS [SNAPSHOT_FOLDER [METRICS_FILE]]]      defaults: 5, none, none
//
// It runs alone, or under ddprun or torchrun. If the launcher asks it to stop, it saves a snapshot
// and exits with code 143. LINEAR_CRASH_AT=N: rank 0 of the first generation kills itself before
// step N.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "examples/random.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/gradients/gradient_reducer.h"
#include "trainer/snapshot/load/load_into.h"
#include "trainer/snapshot/save/snapshot_writer.h"
#include "trainer/training/distributed_sampler.h"
#include "trainer/training/schedule.h"
#include "trainer/worker/error_file.h"
#include "trainer/worker/or_throw.h"
#include "trainer/worker/progress.h"
#include "trainer/worker/snapshot_request.h"
#include "trainer/worker/stop_request.h"

using namespace ddprun;
using namespace ddprun::trainer;

namespace {

// kBatch is for each rank. The validation samples come after the kSamples of the training.
constexpr std::int64_t kInputs = 20, kSamples = 2048, kValidation = 256, kBatch = 32;

// The data are a function of their place, so nothing has to be read or stored.
float input(std::int64_t sample, std::int64_t i) {
    return example::uniform(1, static_cast<std::uint64_t>(sample * kInputs + i));
}

// What the model should learn: w_i = i / 10, b = 1.
float target(std::int64_t sample) {
    float y = 1;
    for (std::int64_t i = 0; i < kInputs; ++i) y += input(sample, i) * static_cast<float>(i) / 10;
    return y;
}

struct Model {
    std::vector<float> w = std::vector<float>(kInputs), b = std::vector<float>(1);

    // Prediction minus target.
    float error(std::int64_t sample) const {
        float y = b[0];
        for (std::int64_t i = 0; i < kInputs; ++i)
            y += w[static_cast<std::size_t>(i)] * input(sample, i);
        return y - target(sample);
    }
    // The parameters as a snapshot holds them.
    std::vector<Tensor> tensors() {
        return {tensor("w", {1, kInputs}, std::span(w)), tensor("b", {1}, std::span(b))};
    }
};

// Adds the gradients of the batch's mean squared error to the reducer's memory. Returns the sum of
// the squared errors.
double backward(const Model& model, const std::vector<std::int64_t>& batch,
                GradientReducer& reducer) {
    auto* dw = static_cast<float*>(reducer.gradient(0).data);
    auto* db = static_cast<float*>(reducer.gradient(1).data);
    double loss = 0;
    for (std::int64_t sample : batch) {
        const float e = model.error(sample), scale = 2 * e / static_cast<float>(batch.size());
        for (std::int64_t i = 0; i < kInputs; ++i) dw[i] += scale * input(sample, i);
        *db += scale;
        loss += static_cast<double>(e) * static_cast<double>(e);
    }
    return loss;
}

// Plain SGD. The averaged gradients are equal on all ranks, and so the parameters stay equal.
void update(Model& model, const GradientReducer& reducer, float rate) {
    const auto* dw = static_cast<const float*>(reducer.gradient(0).data);
    for (std::size_t i = 0; i < kInputs; ++i) model.w[i] -= rate * dw[i];
    model.b[0] -= rate * *static_cast<const float*>(reducer.gradient(1).data);
}

// Each rank takes its part of the validation samples. The mean is exact also if they do not divide
// evenly.
double validate(const Model& model, ProcessGroup& group) {
    WeightedMean mine;
    for (std::int64_t s = group.rank(); s < kValidation; s += group.size()) {
        const double e = static_cast<double>(model.error(kSamples + s));
        mine.add(e * e);
    }
    return *or_throw(mean_over_ranks(group, mine)).mean();  // (*)
}

// What a training has: the library's objects, the model, and how far it is.
struct Run {
    const Context& context;
    Store& store;
    ProcessGroup& group;
    DistributedSampler sampler;
    StopRequest stop;
    SnapshotRequest request = SnapshotRequest::from_environment();
    Model model = {};
    std::int64_t step = 0;
    bool stopped = false;
    std::unique_ptr<SnapshotWriter> writer = nullptr;

    // Loads the newest snapshot, if there is one, and makes the writer for new ones. Keeps three
    // snapshots.
    void resume_from(const std::string& path) {
        // A warning, for example about a damaged snapshot, does not stop the training.
        auto folder =
            or_throw(SnapshotFolder::open(context, path, 3, [](const std::string& warning) {
                std::fprintf(stderr, "linear: warning: %s\n", warning.c_str());
            }));
        const auto snapshot = or_throw(resume(context, store, folder, group.timeout()));  // (*)
        WriterOptions options;
        options.goes_on_unsaved = true;  // a full disk costs no step
        writer = or_throw(SnapshotWriter::make(context, store, std::move(folder), options));
        // Allocates the writer's memory now, so that the first save() does not take longer than the
        // others.
        writer->prepare(views_of(model.tensors()));
        if (!snapshot) return;
        or_throw(load_into(*snapshot, model.tensors()));
        const auto& manifest = snapshot->manifest;
        step = manifest.name.step;
        if (context.is_first())
            std::printf("resumed from %s at step %lld\n", manifest.name.stem().c_str(),
                        static_cast<long long>(step));
        auto number = [&](const char* key) {
            return or_throw(value_of<std::int64_t>(manifest, key));
        };
        or_throw(sampler.resume({number("epoch"), number("consumed")}));  // (*)
    }

    // The epoch and the number of consumed samples are the whole position in the data.
    void save() {
        if (!writer) return;
        const auto [epoch, consumed] = sampler.position();
        or_throw(writer->save(step, views_of(model.tensors()),
                              {{"epoch", text_of(epoch)}, {"consumed", text_of(consumed)}}));
    }

    // Tells the launcher the step and the newest snapshot.
    void report(Progress& progress) const {
        // Without a snapshot folder the launcher reads -1.
        const auto newest = writer ? writer->newest() : SnapshotWriter::Newest{};
        progress.report(step, newest.step, newest.duration.count(),
                        writer ? writer->held().count() : -1);
    }

    void crash_if_asked() const {
        const char* at = std::getenv("LINEAR_CRASH_AT");
        // Only in the first generation, or the job would never end.
        if (at && std::atoll(at) == step && context.is_first() && context.generation.value == 0)
            (void)raise(SIGKILL);
    }
};

// One step. Adds its loss to `loss` and its communication times to `figures`.
void take_step(Run& run, GradientReducer& reducer, const std::vector<std::int64_t>& batch,
               float rate, WeightedMean& loss, EpochFigures& figures) {
    or_throw(reducer.zero());
    const double squares = backward(run.model, batch, reducer);
    // The last parameter first, as backward in a deep network does. The reducer expects this order.
    for (std::size_t i = 2; i-- > 0;) or_throw(reducer.ready(i));  // (*)
    or_throw(reducer.finish());                                    // (*)
    update(run.model, reducer, rate);
    const auto samples = static_cast<double>(batch.size());
    loss.add(squares / samples, samples);
    figures.communication += std::chrono::duration<double>(reducer.times().communication).count();
    figures.waited += std::chrono::duration<double>(reducer.times().waited).count();
}

// The rest of the epoch, or the steps until some rank is asked to stop.
void take_steps(Run& run, GradientReducer& reducer, const Schedule& schedule, Progress& progress,
                WeightedMean& loss, EpochFigures& figures) {
    while (!run.stopped) {
        run.crash_if_asked();
        // The position in epochs. It is the same for every world size, and so is the learning rate.
        const double at = static_cast<double>(figures.epoch) +
                          static_cast<double>(run.sampler.position().consumed) / kSamples;
        const auto batch = run.sampler.next(kBatch);  // (*)
        if (batch.empty()) break;
        take_step(run, reducer, batch, static_cast<float>(rate_at(schedule, at, 1)), loss, figures);
        // (*) Without a folder for snapshots, a request for one stays open. All stop after the same
        // step.
        ++run.step;
        const auto asked = or_throw(
            asked_of_any(run.group, {run.stop.asked(), run.writer ? run.request.asked() : 0}));
        if (asked.snapshot > 0) run.request.begun(asked.snapshot);
        // save() only copies; a thread writes the files.
        if (run.step % 8 == 0 || asked.snapshot > 0) run.save();
        run.report(progress);
        run.stopped = asked.stop;
    }
}

// Trains the rest of the current epoch and computes its figures. After a resume the rest may be
// only a part of the epoch.
EpochFigures train_epoch(Run& run, GradientReducer& reducer, const Schedule& schedule,
                         Progress& progress) {
    EpochFigures figures;
    figures.epoch = run.sampler.position().epoch;
    figures.world = run.context.world_size;
    if (run.sampler.position().consumed > 0) figures.since = run.step;
    WeightedMean loss;
    const auto begun = std::chrono::steady_clock::now();
    take_steps(run, reducer, schedule, progress, loss, figures);
    if (run.stopped) return figures;
    figures.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    // Not after a stop: the snapshot then keeps the position in the middle of the epoch.
    run.sampler.next_epoch();
    const auto all = or_throw(mean_over_ranks(run.group, loss));  // (*)
    figures.step = run.step;
    figures.samples = all.weight();
    figures.loss = all.mean().value_or(0);
    figures.validation = validate(run.model, run.group);
    return figures;
}

void train(Run& run, std::int64_t epochs, const std::string& metrics) {
    const auto reducer = or_throw(GradientReducer::make(
        run.group,  // (*)
        {{"w", buffer_of(std::span(run.model.w))}, {"b", buffer_of(std::span(run.model.b))}}));
    auto progress = Progress::from_environment();
    // Rate 0.05, not scaled; warm-up over half an epoch; then a cosine down to 0.005 at the end.
    const Schedule schedule{0.05, 0, 0.5, static_cast<double>(epochs), 0.005};
    while (!run.stopped && run.sampler.position().epoch < epochs) {
        const auto figures = train_epoch(run, *reducer, schedule, progress);
        if (!run.context.is_first() || run.stopped) continue;
        std::printf("%s\n", line_of(figures).c_str());
        if (metrics.empty()) continue;
        std::ofstream file(metrics, std::ios::app);
        if (!(file << json_of(figures) << "\n" << std::flush))
            std::fprintf(stderr, "linear: warning: cannot write to %s\n", metrics.c_str());
    }
    run.save();
    // The last snapshot must be on disk before the process ends.
    if (run.writer) or_throw(run.writer->wait());
    run.report(progress);
    if (run.context.is_first() && run.stopped)
        std::printf("stopped after step %lld\n", static_cast<long long>(run.step));
    else if (run.context.is_first())
        std::printf("w[10]=%.3f b=%.3f checksum=%s\n", static_cast<double>(run.model.w[10]),
                    static_cast<double>(run.model.b[0]),
                    checksum_of(std::as_bytes(std::span(run.model.w))).c_str());
}

// Makes the objects, in their order of use, and trains. Returns the exit code.
int start(std::int64_t epochs, const std::string& folder, const std::string& metrics) {
    // First of all: from here on SIGTERM is a request and does not end the process.
    auto stop = StopRequest::from_environment();                 // (*)
    const auto context = or_throw(Context::from_environment());  // (*)
    auto store = or_throw(connect_store(context));               // (*)
    GroupOptions options;
    options.backend = Backend::gloo;  // the model lies in the host's memory
    auto group = or_throw(make_process_group(context, *store, options));  // (*)
    auto sampler = or_throw(DistributedSampler::make({kSamples, 7}, context.rank.value,
                                                     context.world_size));  // (*)
    Run run{context, *store, *group, sampler, std::move(stop)};
    if (!folder.empty()) run.resume_from(folder);
    train(run, epochs, metrics);
    // 143, as a shell reports a process that SIGTERM ended: work is left.
    return run.stopped ? 128 + SIGTERM : 0;
}

}  // namespace

int main(int argc, char** argv) try {
    char* end = nullptr;
    const long long epochs = argc > 1 ? std::strtoll(argv[1], &end, 10) : 5;
    // There are no options: a word that looks like one is a mistake.
    bool good = argc <= 4 && epochs >= 0 && (!end || (end != argv[1] && *end == '\0'));
    for (int i = 1; i < argc; ++i) good = good && argv[i][0] != '-';
    if (!good) {
        std::fprintf(stderr, "usage: linear [EPOCHS [SNAPSHOT_FOLDER [METRICS_FILE]]]\n");
        return 2;
    }
    return start(epochs, argc > 2 ? argv[2] : "", argc > 3 ? argv[3] : "");
} catch (const Failure& failure) {
    std::fprintf(stderr, "linear: %s\n", failure.what());
    return report_error(failure.error());
}
