// train: a data-parallel worker on the trainer library. Options in train_options.h, the loop in
// training.h.
#include <signal.h>

#include <cstdio>

#include "examples/training.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/worker/error_file.h"

using namespace ddprun;
using namespace ddprun::trainer;

namespace {

int failed(const Error& error) {
    std::fprintf(stderr, "train: %s\n", error.sentence().c_str());
    return report_error(error);
}

Result<std::unique_ptr<example::Mlp>> make_mlp(const ProcessGroup& group,
                                               const example::MlpShape& shape, std::uint64_t seed) {
    const auto first = example::initial_parameters(shape, seed);
    if (group.memory() == Memory::gpu) return example::make_cuda_mlp(shape, first);
    return example::make_cpu_mlp(shape, first);
}

Result<int> train(const example::TrainOptions& options, StopRequest stop) {
    auto context = Context::from_environment();
    if (!context) return context.error();
    const auto timeout = std::chrono::seconds(options.timeout_s);
    auto store = connect_store(*context, timeout);
    if (!store) return store.error();
    GroupOptions group_options{options.backend, timeout, {}};
    auto group = make_process_group(*context, **store, group_options);
    if (!group) return group.error();
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
        std::fflush(stdout);
    }
    example::Training training({options, *context, **store, **group, *data, **mlp, *sampler,
                                Progress::from_environment(), std::move(stop)});
    if (auto begun = training.begin(); !begun) return begun.error();
    auto end = training.run();
    if (!end) return end.error();
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
    auto code = train(*options, StopRequest::from_environment());
    return code ? *code : failed(code.error());
}
