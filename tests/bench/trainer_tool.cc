// What trainer.py measures of the trainer library. Each command prints its figures as one line of
// JSON, or writes them to FILE. The program uses the library as a user's program does.
//
//   trainer_tool start FILE            one all-reduce; the last moment goes to FILE.<rank>
//   trainer_tool overlap FILE          eight layers of 12.5 ms and 1.6 MB each, with overlap and
//                                      without; rank 0's figures go to FILE
//   trainer_tool snapshot FOLDER MB    ten snapshots: memcpy, stall, background write, load
//   trainer_tool gpu BATCH             a step on one GPU with the library's reducer and NCCL, and
//                                      without
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "examples/mlp.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/gradients/gradient_reducer.h"
#include "trainer/snapshot/snapshot_writer.h"

using namespace ddprun::trainer;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
}

// The median and not the mean: one interrupted step must not change the result.
double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// From here to the first result a user waits. trainer.py knows when the launcher was started, and
// reads the end from the file.
int start(const std::string& file) {
    auto context = Context::from_environment().value();
    auto store = connect_store(context).value();
    GroupOptions options;
    options.backend = Backend::gloo;
    auto group = make_process_group(context, *store, options).value();
    float value[] = {1};
    if (!group->all_reduce(buffer_of(std::span<float>(value)))) return 1;
    std::ofstream(file + "." + std::to_string(context.rank.value))
        << std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
               .count()
        << "\n";
    // A sum that is not the world size means that some rank was missing.
    return value[0] == static_cast<float>(context.world_size) ? 0 : 2;
}

// Eight tensors of equal size, together as large as asked for. Their values differ, so that a
// mix-up shows in the checksums.
std::vector<std::vector<float>> tensors_of(std::size_t bytes) {
    std::vector<std::vector<float>> values(8);
    for (std::size_t t = 0; t < values.size(); ++t)
        values[t].assign(bytes / 8 / sizeof(float), static_cast<float>(t));
    return values;
}

// One rank alone: what it costs to save and load this rank's share. Figures are in GB/s.
int snapshot(const std::string& folder, std::size_t bytes) {
    const auto values = tensors_of(bytes);
    std::vector<TensorView> views;
    for (std::size_t t = 0; t < values.size(); ++t)
        views.push_back(tensor_view("t" + std::to_string(t), {values[t].size()},
                                    std::span<const float>(values[t])));
    const double gigabytes = static_cast<double>(bytes) / 1e9;
    // The copy of the comparison goes into the same kind of memory as a snapshot.
    PageBuffer target;
    if (!target.resize(bytes)) return 1;
    std::vector<double> copies, stalls, writes, loads;
    // A Context of its own values is a world of one rank, without a launcher.
    Context context;
    auto store = connect_store(context).value();
    WriterOptions options;
    auto open = [&] { return std::move(*SnapshotFolder::open(context, folder, 2, {})); };
    auto writer = SnapshotWriter::make(context, *store, open(), options).value();
    // The memory is allocated before the first snapshot. So the first stall must not be longer than
    // the tenth.
    writer->prepare(views);
    if (!writer->wait()) return 2;
    for (int step = 0; step < 10; ++step) {
        // The copy and the snapshot take turns, so that both find the caches of the machine alike.
        const auto copied = Clock::now();
        std::byte* to = target.bytes().data();
        for (const auto& view : views) {
            std::memcpy(to, view.data.data(), view.data.size());
            to += view.data.size();
        }
        copies.push_back(seconds_since(copied));
        const auto begun = Clock::now();
        if (!writer->save(step, views, {})) return 3;
        // The stall is what training waits for. The rest happens in the background.
        stalls.push_back(seconds_since(begun));
        if (!writer->wait()) return 4;
        writes.push_back(seconds_since(begun) - stalls.back());
    }
    for (int i = 0; i < 5; ++i) {
        auto reader = open();
        const auto begun = Clock::now();
        auto loaded = reader.load(SnapshotName{9, context.generation});
        if (!loaded) return 5;
        loads.push_back(seconds_since(begun));
    }
    std::printf(
        "{\"memcpy\": %.3f, \"stall\": %.3f, \"stall_first\": %.3f, \"stall_tenth\": %.3f, "
        "\"background\": %.3f, \"save\": %.3f, \"load\": %.3f}\n",
        gigabytes / median(copies), gigabytes / median(stalls), gigabytes / stalls.front(),
        gigabytes / stalls.back(), gigabytes / median(writes),
        gigabytes / (median(stalls) + median(writes)), gigabytes / median(loads));
    return 0;
}

// Milliseconds of a step. Each of eight layers keeps the processor busy for 12.5 ms and does
// nothing else. Its gradient is reduced as soon as it is ready, or late: all of them at the end of
// backward.
int overlap(const std::string& file) {
    auto context = Context::from_environment().value();
    auto store = connect_store(context).value();
    GroupOptions options;
    options.backend = Backend::gloo;
    auto group = make_process_group(context, *store, options).value();
    std::vector<std::vector<float>> layers(8, std::vector<float>(409'600));  // 1.6 MB
    std::vector<NamedBuffer> parameters;
    for (auto& layer : layers)
        parameters.push_back(
            {"layer" + std::to_string(parameters.size()), buffer_of(std::span(layer))});
    ReducerOptions sizes;
    // Two layers fill more than one bucket, as with PyTorch's cap of 3 MB in trainer.py.
    sizes.bucket_bytes = std::size_t{3} << 20;
    auto reducer = GradientReducer::make(*group, parameters, sizes).value();
    double figures[2];
    for (bool late : {false, true}) {
        std::vector<double> steps;
        for (int step = 0; step < 15; ++step) {
            if (!group->barrier()) return 1;
            const auto begun = Clock::now();
            // Backward goes from the last layer to the first.
            for (std::size_t i = layers.size(); i-- > 0;) {
                const auto layer = Clock::now();
                while (seconds_since(layer) < 0.0125) {
                }
                if (!late && !reducer->ready(i)) return 2;
            }
            for (std::size_t i = layers.size(); late && i-- > 0;)
                if (!reducer->ready(i)) return 3;
            if (!reducer->finish()) return 4;
            steps.push_back(1000 * seconds_since(begun));
        }
        figures[late] = median(steps);
    }
    if (context.is_first())
        std::ofstream(file) << "{\"overlapped\": " << figures[0] << ", \"late\": " << figures[1]
                            << "}\n";
    return group->barrier() ? 0 : 5;
}

// Milliseconds of a step of a network with 4 M parameters. Steps with and without reduction take
// turns. A step without it does what a program without the library would do.
int gpu(std::size_t batch) {
    const auto context = Context::from_environment().value();
    auto store = connect_store(context).value();
    GroupOptions options;
    options.backend = Backend::nccl;
    auto group = make_process_group(context, *store, options);
    if (!group) {
        std::fprintf(stderr, "%s\n", group.error().sentence().c_str());
        return 2;
    }
    const example::MlpShape shape{1022, 4096};
    auto mlp = example::make_cuda_mlp(shape, example::initial_parameters(shape, 1)).value();
    auto reducer = GradientReducer::make(**group, mlp->parameters()).value();
    const std::vector<float> x(batch * 1022, 0.5f), y(batch, 1.0f);
    std::vector<double> figures[2];
    for (int step = 0; step < 220; ++step) {
        const bool reduced = step % 2;
        const auto begun = Clock::now();
        if (!reducer->zero() || !mlp->forward(x, y)) return 3;
        std::optional<GradientReducer::NoSync> quiet;
        if (!reduced) quiet.emplace(*reducer);
        if (!mlp->backward(*reducer)) return 4;
        if (reduced && !reducer->finish()) return 5;
        // Work on a GPU is asynchronous. The upload of the next forward pass waits for all of it,
        // with and without reduction.
        if (!mlp->update(mlp->parameters(), reducer->gradients(), 1e-6f, 0) || !mlp->forward(x, y)) return 6;
        if (step >= 20) figures[reduced].push_back(1000 * seconds_since(begun));  // after a warm-up
    }
    std::printf("{\"with\": %.4f, \"without\": %.4f}\n", median(figures[1]), median(figures[0]));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string command = argc > 2 ? argv[1] : "";
    if (command == "start") return start(argv[2]);
    if (command == "overlap") return overlap(argv[2]);
    if (command == "snapshot" && argc > 3)
        return snapshot(argv[2], std::strtoull(argv[3], nullptr, 10) << 20);
    if (command == "gpu") return gpu(std::strtoull(argv[2], nullptr, 10));
    std::fprintf(stderr,
                 "trainer_tool start FILE | overlap FILE | snapshot FOLDER MB | gpu BATCH\n");
    return 64;
}
