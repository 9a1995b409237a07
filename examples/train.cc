// train: a data-parallel worker that uses all parts of the trainer library. train_options.h has its
// options, training.h its loop. This file makes the objects and puts them together.
#include <signal.h>

#include <cstdio>

#include "examples/training.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/worker/error_file.h"

using namespace ddprun;
using namespace ddprun::trainer;

namespace {

// Prints the error, writes it for the launcher, and returns the exit code.
int failed(const Error& error) {
    std::fprintf(stderr, "train: %s\n", error.sentence().c_str());
    return report_error(error);
}

// The network lies in the kind of memory that the group works on.
Result<std::unique_ptr<example::Mlp>> make_mlp(const ProcessGroup& group,
                                               const example::MlpShape& shape, std::uint64_t seed) {
    const auto first = example::initial_parameters(shape, seed);
    if (group.memory() == Memory::gpu) return example::make_cuda_mlp(shape, first);
    return example::make_cpu_mlp(shape, first);
}

// The objects in their order of use: place, store, group, data, network, sampler, training.
Result<int> train(const example::TrainOptions& options, StopRequest stop) {
    auto context = Context::from_environment();
    if (!context) return context.error();
    const auto timeout = std::chrono::seconds(options.timeout_s);
    auto store = connect_store(*context, timeout);
    if (!store) return store.error();
    GroupOptions group_options{options.backend, timeout, {}};
    auto group = make_process_group(*context, **store, group_options);
    if (!group) return group.error();
    // Every rank has all the data. The sampler decides which of them it uses.
    auto data = options.data.empty()
                    ? Result<example::Dataset>(example::Dataset::made(
                          static_cast<std::size_t>(options.samples), 16, options.seed))
                    : example::Dataset::from_csv(options.data);
    if (!data) return data.error();
    const example::MlpShape shape{data->inputs(), options.hidden};
    auto mlp = make_mlp(**group, shape, options.seed);
    if (!mlp) return mlp.error();
    auto sampler = DistributedSampler::make({static_cast<std::int64_t>(data->size()), options.seed},
                                            context->rank.value, context->world_size);
    if (!sampler) return sampler.error();
    if (context->is_first()) {
        std::printf("training on %d ranks with %s, generation %lld\n", context->world_size,
                    (*group)->backend(), static_cast<long long>(context->generation.value));
        // Standard output may be a pipe to the launcher, which would see the line only at the end.
        std::fflush(stdout);
    }
    example::Training training({options, *context, **store, **group, *data, **mlp, *sampler,
                                Progress::from_environment(), std::move(stop),
                                SnapshotRequest::from_environment()});
    if (auto begun = training.begin(); !begun) return begun.error();
    auto end = training.run();
    if (!end) return end.error();
    // 143, as a shell reports a process that SIGTERM ended: work is left.
    if (*end == example::Training::End::stopped) return 128 + SIGTERM;
    auto result = training.result();
    if (!result) return result.error();
    if (context->is_first()) std::printf("%s\n", result->c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    auto options = example::parse_train_options({argv + 1, argv + argc});
    if (!options) return failed(options.error());
    if (options->help) return std::fputs(example::kTrainHelp, stdout) < 0;
    // StopRequest is made here, before anything that takes time: until then SIGTERM ends the
    // process.
    auto code = train(*options, StopRequest::from_environment());
    return code ? *code : failed(code.error());
}
