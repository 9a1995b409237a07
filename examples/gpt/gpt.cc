// gpt: trains a GPT-2 on characters with forward and backward passes of its own, data parallel.
// gpt_options.h has its options, gpt_training.h its loop. This file makes the objects and puts them
// together.
#include <signal.h>

#include <cstdio>
#include <new>

#include "examples/gpt/cpu_kernels.h"
#include "examples/gpt/cuda_kernels.h"
#include "examples/gpt/gpt_training.h"
#include "examples/gpt/model_file.h"
#include "examples/needs.h"
#include "examples/output_files.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/worker/error_file.h"
#include "trainer/worker/or_throw.h"

using namespace ddprun;
using namespace ddprun::trainer;
using namespace example::gpt;

namespace {

// Prints the error, writes it for the launcher, and returns the exit code.
int failed(const Error& error) {
    std::fprintf(stderr, "gpt: %s\n", error.sentence().c_str());
    return report_error(error);
}

// The text, and the network with which the training begins or which is evaluated.
struct Start {
    Text text;
    GptShape shape;
    std::vector<float> parameters;
};

// Everything that may be wrong with the input shows here, before the ranks meet.
Result<Start> make_start(const GptOptions& options) {
    auto text = load_text(options.text);
    if (!text) return text.error();
    const std::string& file = options.evaluate.empty() ? options.init : options.evaluate;
    auto vocabulary = vocabulary_of(*text);
    GptShape shape;
    std::vector<float> parameters;
    if (file.empty()) {
        auto asked = shape_of(options, vocabulary.size());
        if (!asked) return asked.error();
        shape = *asked;
    } else {
        auto model = read_model(file);
        if (!model) return model.error();
        shape = model->shape;
        parameters = std::move(model->parameters);
        if (model->vocabulary) vocabulary = *model->vocabulary;
    }
    if (auto fits = check_vocabulary(shape, vocabulary.size()); !fits) return fits.error();
    auto cut = Text::make(*text, vocabulary, shape.context);
    if (!cut) return cut.error();
    if (file.empty()) parameters = first_parameters(shape, options.seed);
    return Start{*cut, shape, std::move(parameters)};
}

template <class T>
Result<std::unique_ptr<Gpt>> make_on_gpu(const Start& start) {
    auto kernels = cuda_kernels<T>();
    if (!kernels) return kernels.error();
    return make_gpt(start.shape, start.parameters, **kernels, Memory::gpu);
}

// The network lies in the kind of memory that the group works on.
Result<std::unique_ptr<Gpt>> make_network(const ProcessGroup& group, const GptOptions& options,
                                          const Start& start) {
    if (group.memory() == Memory::host && options.precision != Precision::automatic)
        return usage_error("--precision has no effect on CPUs, where gpt works in float32");
    if (group.memory() == Memory::host)
        return make_gpt(start.shape, start.parameters, cpu_kernels(), Memory::host);
    return options.precision == Precision::float32 ? make_on_gpu<float>(start)
                                                   : make_on_gpu<Bfloat16>(start);
}

void tell_start(const Context& context, const ProcessGroup& group, const Start& start) {
    if (!context.is_first()) return;
    std::printf(
        "%.2f M parameters on %d ranks with %s, generation %lld; %lld windows of %d characters\n",
        static_cast<double>(start.parameters.size()) / 1e6, context.world_size, group.backend(),
        static_cast<long long>(context.generation.value),
        static_cast<long long>(start.text.training_windows()), start.shape.context);
    // Standard output may be a pipe to the launcher, which would see the line only at the end.
    std::fflush(stdout);
}

Result<int> evaluate(const GptOptions& options, ProcessGroup& group, const Start& start, Gpt& gpt) {
    auto mean = validate(group, start.text, gpt, options.batch);
    if (!mean) return mean.error();
    if (group.rank() == 0) std::printf("validation=%.9g\n", mean->mean().value_or(0));
    if (auto done = group.barrier(); !done) return done.error();
    return 0;
}

// The objects in their order of use: place, input, store, group, network, sampler, training.
Result<int> train(const GptOptions& options, StopRequest stop) {
    auto context = Context::from_environment();
    if (!context) return context.error();
    if (auto good = example::check_crash_rank(options, *context); !good) return good.error();
    auto writes = example::check_outputs(*context, options.save, options.metrics);
    if (!writes) return writes.error();
    auto start = make_start(options);
    if (!start) return start.error();
    const auto timeout = std::chrono::seconds(options.timeout_s);
    auto store = connect_store(*context, timeout);
    if (!store) return store.error();
    auto group = make_process_group(*context, **store, {options.backend, timeout, {}});
    if (!group) return group.error();
    auto gpt = make_network(**group, options, *start);
    if (!gpt) return gpt.error();
    tell_start(*context, **group, *start);
    if (!options.evaluate.empty()) return evaluate(options, **group, *start, **gpt);
    auto sampler = DistributedSampler::make({start->text.training_windows(), options.seed},
                                            context->rank.value, context->world_size);
    if (!sampler) return sampler.error();
    GptTraining training(
        {options, *context, **store, **group, start->text, **gpt, *sampler, std::move(stop)});
    training.begin();
    // 143, as a shell reports a process that SIGTERM ended: work is left.
    if (training.run() == GptTraining::End::stopped) return 128 + SIGTERM;
    training.finish();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    auto options = parse_gpt_options({argv + 1, argv + argc});
    if (!options) return failed(options.error());
    if (options->help) return std::fputs(kGptHelp, stdout) < 0;
    // StopRequest is made here, before anything that takes time: until then SIGTERM ends the
    // process.
    try {
        auto code = train(*options, StopRequest::from_environment());
        return code ? *code : failed(code.error());
    } catch (const Failure& failure) {
        return failed(failure.error());
    } catch (const std::bad_alloc&) {
        return failed(no_memory(*options));
    }
}
