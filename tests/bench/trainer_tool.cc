// What trainer.py measures of the trainer library. Each command prints its figures as one line of
// JSON, or writes them to FILE. The program uses the library as a user's program does.
//
//   trainer_tool start FILE            one all-reduce; the last moment goes to FILE.<rank>
//   trainer_tool overlap FILE          eight layers of 12.5 ms and 1.6 MB each, with overlap and
//                                      without; rank 0's figures go to FILE
//   trainer_tool calls FILE            all-reduces of two sizes, and steps of a network with 4.7 MB
//                                      of gradients; rank 0's figures go to FILE
//   trainer_tool replicas FILE         comparisons of replicas with parameters of three sizes; rank
//                                      0's figures go to FILE
//   trainer_tool snapshot FOLDER MB    ten snapshots: memcpy, stall, background write, load
//   trainer_tool zero FILE             a step with AdamW on each rank, and with a ShardedOptimizer
//   trainer_tool reshard FOLDER MB     saves slices, or loads those that are there, beside reading
//                                      the same share of the files
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
#include "trainer/optimizer/sharded_optimizer.h"
#include "trainer/snapshot/load/load_into.h"
#include "trainer/snapshot/load/load_slices.h"
#include "trainer/snapshot/save/snapshot_writer.h"
#include "trainer/training/agreement.h"

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

struct GlooRanks {
    Context context;
    std::unique_ptr<Store> store;
    std::unique_ptr<ProcessGroup> group;
};
GlooRanks gloo_ranks() {
    auto context = Context::from_environment().value();
    auto store = connect_store(context).value();
    GroupOptions options;
    options.backend = Backend::gloo;
    auto group = make_process_group(context, *store, options).value();
    return {std::move(context), std::move(store), std::move(group)};
}

// From here to the first result a user waits. trainer.py knows when the launcher was started, and
// reads the end from the file.
int start(const std::string& file) {
    const GlooRanks ranks = gloo_ranks();
    ProcessGroup& group = *ranks.group;
    const Context& context = ranks.context;
    float value[] = {1};
    if (!group.all_reduce(buffer_of(std::span<float>(value)))) return 1;
    std::ofstream(file + "." + std::to_string(context.rank.value))
        << std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
               .count()
        << "\n";
    // A sum that is not the world size means that some rank was missing.
    return value[0] == static_cast<float>(context.world_size) ? 0 : 2;
}

// Median milliseconds of `call`, which all ranks begin together.
template <class Call>
double median_ms(ProcessGroup& group, int warm_up, int turns, const Call& call) {
    std::vector<double> times;
    for (int turn = 0; turn < warm_up + turns; ++turn) {
        if (!group.barrier()) std::exit(2);
        const auto begun = Clock::now();
        if (!call()) std::exit(3);
        if (turn >= warm_up) times.push_back(1000 * seconds_since(begun));
    }
    return median(times);
}

int calls(const std::string& file) {
    const GlooRanks ranks = gloo_ranks();
    ProcessGroup& group = *ranks.group;
    const Context& context = ranks.context;
    std::vector<double> found;
    for (const std::size_t bytes : {std::size_t{26'000'000}, std::size_t{1} << 20}) {
        std::vector<float> values(bytes / sizeof(float), 1.0f);
        found.push_back(median_ms(group, 5, 40, [&] {
            return static_cast<bool>(
                group.all_reduce({values.data(), values.size(), DataType::float32}));
        }));
    }
    const example::MlpShape shape{16, 65536};
    auto mlp = example::make_cpu_mlp(shape, example::initial_parameters(shape, 1));
    auto reducer = GradientReducer::make(group, mlp->parameters()).value();
    const std::vector<float> x(4 * 16, 0.5f), y(4, 1.0f);
    found.push_back(median_ms(group, 5, 100, [&] {
        return reducer->zero() && mlp->forward(x, y) && mlp->backward(*reducer) &&
               reducer->finish() &&
               mlp->update(mlp->parameters(), reducer->gradients(), 1e-6f, 0.9f);
    }));
    if (context.is_first())
        std::ofstream(file) << "{\"26 MB\": " << found[0] << ", \"1 MiB\": " << found[1]
                            << ", \"step\": " << found[2] << "}";
    return group.barrier() ? 0 : 4;
}

// What a step with a comparison takes longer: GradientReducer::finish() makes it in the first ten
// steps, and then in every N-th on request.
int replicas(const std::string& file) {
    const GlooRanks ranks = gloo_ranks();
    ProcessGroup& group = *ranks.group;
    const Context& context = ranks.context;
    std::vector<double> found;
    for (const std::size_t bytes :
         {std::size_t{4'700'000}, std::size_t{64} << 20, std::size_t{256} << 20}) {
        std::vector<std::vector<float>> values(8, std::vector<float>(bytes / 8 / sizeof(float), 1));
        std::vector<NamedBuffer> parameters;
        for (auto& one : values)
            parameters.push_back({std::to_string(parameters.size()), buffer_of(std::span(one))});
        std::uint64_t turn = 0;
        found.push_back(median_ms(group, 3, 40, [&] {
            return static_cast<bool>(verify_replicas(group, parameters, turn++));
        }));
    }
    if (context.is_first())
        std::ofstream(file) << "{\"4.7 MB\": " << found[0] << ", \"64 MiB\": " << found[1]
                            << ", \"256 MiB\": " << found[2] << "}";
    return group.barrier() ? 0 : 4;
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
    options.shares_memory = false;  // its ranks play two hosts, with a link between them
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

// Memory of this process, in MB.
double resident() {
    std::ifstream statm("/proc/self/statm");
    double size = 0, resident = 0;
    statm >> size >> resident;
    return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// Eight layers of 1.6 MB, each busy for 5 ms in backward. The optimizer's state is on each rank
// (whole) or shared out.
struct ZeroStep {
    ZeroStep(ProcessGroup& group, bool shared) : rule(OptimizerRule::adamw()) {
        std::vector<NamedBuffer> parameters;
        for (auto& layer : layers)
            parameters.push_back(
                {"layer" + std::to_string(parameters.size()), buffer_of(std::span(layer))});
        ReducerOptions sizes;
        sizes.bucket_bytes = std::size_t{3} << 20;
        const double before = resident();
        if (shared)
            optimizer = ShardedOptimizer::make(group, parameters, rule, sizes).value();
        else
            own = GradientReducer::make(group, parameters, sizes).value();
        if (!shared) state.assign(16, std::vector<float>(layers[0].size()));
        megabytes = resident() - before;
    }
    GradientReducer& reducer() { return optimizer ? optimizer->reducer() : *own; }
    bool run() {
        if (!reducer().zero()) return false;
        for (std::size_t i = layers.size(); i-- > 0;) {
            const auto begun = Clock::now();
            while (seconds_since(begun) < 0.005) {
            }
            if (!reducer().ready(i)) return false;
        }
        if (!reducer().finish()) return false;
        ++step;
        if (optimizer) return optimizer->step(1e-3f) && optimizer->wait();
        for (std::size_t i = 0; i < layers.size(); ++i) {
            const auto gradient = reducer().gradient(i);
            const std::span<float> both[] = {state[2 * i], state[2 * i + 1]};
            update(rule, step, 1e-3f, layers[i],
                   {static_cast<const float*>(gradient.data), gradient.count}, both);
        }
        return true;
    }

    const OptimizerRule rule;
    std::vector<std::vector<float>> layers{8, std::vector<float>(409'600)};
    std::unique_ptr<ShardedOptimizer> optimizer;
    std::unique_ptr<GradientReducer> own;
    std::vector<std::vector<float>> state;
    double megabytes = 0;
    int step = 0;
};

int zero(const std::string& file) {
    const GlooRanks ranks = gloo_ranks();
    ProcessGroup& group = *ranks.group;
    const Context& context = ranks.context;
    ZeroStep whole(group, false), shared(group, true);
    std::vector<double> times[2];
    // In turn, so that both find the machine alike.
    for (int step = 0; step < 40; ++step) {
        if (!group.barrier()) return 1;
        const auto begun = Clock::now();
        if (!(step % 2 ? shared : whole).run()) return 2;
        if (step >= 4) times[step % 2].push_back(1000 * seconds_since(begun));
    }
    if (context.is_first())
        std::ofstream(file) << "{\"whole\": " << median(times[0])
                            << ", \"sharded\": " << median(times[1])
                            << ", \"whole_mb\": " << whole.megabytes
                            << ", \"sharded_mb\": " << shared.megabytes << "}\n";
    return group.barrier() ? 0 : 3;
}

// Rows of a matrix, dealt out over the ranks; the last one has the rest.
Tensor rows_of(const Context& context, std::uint64_t rows, std::vector<float>& values) {
    constexpr std::uint64_t kColumns = 4096;
    const auto world = static_cast<std::uint64_t>(context.world_size);
    const auto rank = static_cast<std::uint64_t>(context.rank.value);
    const std::uint64_t first = rank * rows / world, end = (rank + 1) * rows / world;
    values.resize((end - first) * kColumns);
    return slice_of("w", {rows, kColumns}, {first, 0}, {end - first, kColumns}, std::span(values));
}

// Reads every rank's share of the bytes of all files of slices, file by file.
bool read_plainly(const Context& context, const std::string& folder, const Manifest& manifest,
                  std::vector<float>& values) {
    std::uint64_t all = 0, at = 0;
    for (const auto& file : manifest.files) all += file.bytes;
    const auto world = static_cast<std::uint64_t>(context.world_size);
    const auto rank = static_cast<std::uint64_t>(context.rank.value);
    const std::uint64_t first = rank * all / world, end = (rank + 1) * all / world;
    values.resize((end - first) / sizeof(float) + 1);
    char* to = reinterpret_cast<char*>(values.data());
    for (const auto& file : manifest.files) {
        const int fd = ::open((folder + "/" + file.name).c_str(), O_RDONLY);
        std::uint64_t from = std::max(first, at);
        while (from < std::min(end, at + file.bytes)) {
            const auto most =
                std::min<std::uint64_t>(8 << 20, std::min(end, at + file.bytes) - from);
            const ssize_t got = ::pread(fd, to, most, static_cast<off_t>(from - at));
            if (got <= 0) return false;
            to += got;
            from += static_cast<std::uint64_t>(got);
        }
        ::close(fd);
        at += file.bytes;
    }
    return true;
}

// Seconds until the last rank has its share. In turn: slices by the library, and the same number
// of bytes by read(). Both write to memory that is there already.
int reshard(const std::string& folder, std::size_t bytes) {
    const GlooRanks ranks = gloo_ranks();
    ProcessGroup& group = *ranks.group;
    const Context& context = ranks.context;
    auto place = SnapshotFolder::open(context, folder, 1, {}).value();
    std::vector<float> values, plain;
    const std::vector<Tensor> mine{rows_of(context, bytes / 4096 / sizeof(float), values)};
    auto loaded = resume_into(context, *ranks.store, place, mine, std::chrono::minutes(2)).value();
    if (!loaded) {
        auto writer = SnapshotWriter::make(context, *ranks.store, std::move(place)).value();
        return writer->save(1, views_of(mine), {}) && writer->wait() ? 0 : 1;
    }
    std::vector<double> times[2];
    for (int round = 0; round < 12; ++round) {
        if (!group.barrier()) return 2;
        const auto begun = Clock::now();
        const bool done = round % 2
                              ? static_cast<bool>(load_slices(folder, loaded->manifest.name, mine))
                              : read_plainly(context, folder, loaded->manifest, plain);
        if (!done || !group.barrier()) return 3;
        if (round >= 2) times[round % 2].push_back(seconds_since(begun));
    }
    if (context.is_first())
        std::printf("{\"read\": %.3f, \"reshard\": %.3f}\n", median(times[0]), median(times[1]));
    return 0;
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
        if (!mlp->update(mlp->parameters(), reducer->gradients(), 1e-6f, 0) || !mlp->forward(x, y))
            return 6;
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
    if (command == "calls") return calls(argv[2]);
    if (command == "replicas") return replicas(argv[2]);
    if (command == "snapshot" && argc > 3)
        return snapshot(argv[2], std::strtoull(argv[3], nullptr, 10) << 20);
    if (command == "zero") return zero(argv[2]);
    if (command == "reshard" && argc > 3)
        return reshard(argv[2], std::strtoull(argv[3], nullptr, 10) << 20);
    if (command == "gpu") return gpu(std::strtoull(argv[2], nullptr, 10));
    std::fprintf(stderr,
                 "trainer_tool start FILE | overlap FILE | calls FILE | replicas FILE | "
                 "snapshot FOLDER MB | zero FILE | reshard FOLDER MB | gpu BATCH\n");
    return 64;
}
