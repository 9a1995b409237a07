// train: a data-parallel worker that uses all parts of the trainer library. train_options.h has its
// options, training.h its loop. This file makes the objects and puts them together.
#include <signal.h>

#include <cstdio>

#include "examples/needs.h"
#include "examples/output_files.h"
#include "examples/training.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/worker/error_file.h"
#include "trainer/worker/or_throw.h"

using namespace ddprun;
using namespace ddprun::trainer;

namespace {

// The network lies in the kind of memory that the group works on.
std::unique_ptr<example::Mlp> make_mlp(const ProcessGroup& group, const example::MlpShape& shape,
                                       const example::TrainOptions& options) {
    const auto first = example::initial_parameters(shape, options.seed);
    if (group.memory() == Memory::host) return example::make_cpu_mlp(shape, first, options.dtype);
    if (options.dtype != DataType::float32)
        throw Failure(usage_error("--dtype " + std::string(to_string(options.dtype)) +
                                  ": this network has no kernels for it on GPUs; use float32, or "
                                  "--backend=gloo"));
    return or_throw(example::make_cuda_mlp(shape, first));
}

// The objects in their order of use: place, data, store, group, network, sampler, training.
int train(const example::TrainOptions& options, StopRequest stop) {
    const auto context = or_throw(Context::from_environment());
    or_throw(example::check_crash_rank(options, context));
    or_throw(example::check_outputs(context, "", options.metrics));
    // Every rank has all the data. The sampler decides which of them it uses. What is wrong with
    // the file is said before the ranks meet.
    const auto data =
        options.data.empty()
            ? example::Dataset::made(static_cast<std::size_t>(options.samples), 16, options.seed)
            : or_throw(example::Dataset::from_csv(options.data));
    const auto timeout = std::chrono::seconds(options.timeout_s);
    auto store = or_throw(connect_store(context, timeout));
    auto group =
        or_throw(make_process_group(context, *store, GroupOptions{options.backend, timeout, {}}));
    const auto mlp = make_mlp(*group, {data.inputs(), options.hidden}, options);
    auto sampler =
        or_throw(DistributedSampler::make({static_cast<std::int64_t>(data.size()), options.seed},
                                          context.rank.value, context.world_size));
    if (context.is_first()) {
        std::printf("training on %d ranks with %s, generation %lld\n", context.world_size,
                    group->backend(), static_cast<long long>(context.generation.value));
        // Standard output may be a pipe to the launcher, which would see the line only at the end.
        std::fflush(stdout);
    }
    example::Training training(
        {options, context, *store, *group, data, *mlp, sampler, std::move(stop)});
    training.begin();
    // 143, as a shell reports a process that SIGTERM ended: work is left.
    if (training.run() == example::Training::End::stopped) return 128 + SIGTERM;
    const std::string result = training.result();
    if (context.is_first()) std::printf("%s\n", result.c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
    const auto options = or_throw(example::parse_train_options({argv + 1, argv + argc}));
    if (options.help) return std::fputs(example::kTrainHelp, stdout) < 0;
    // StopRequest is made here, before anything that takes time: until then SIGTERM ends the
    // process.
    return train(options, StopRequest::from_environment());
} catch (const Failure& failure) {
    std::fprintf(stderr, "train: %s\n", failure.what());
    // Also writes the error to the file that the launcher reads, and returns the exit code.
    return report_error(failure.error());
}
