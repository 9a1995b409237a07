// gpt_torch: the GPT-2 of examples/gpt in libtorch, data parallel. The options, the text, the first
// weights, the order of the data and the files are those of gpt and of examples/python/gpt.py.
//
//   ddprun --standalone --nproc-per-node=2 build/bin/gpt_torch --steps 200 --snapshot-dir FOLDER
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <new>

#include "examples/gpt/gpt_options.h"
#include "examples/gpt/model_file.h"
#include "examples/gpt/sample_text.h"
#include "examples/gpt/text.h"
#include "examples/random.h"
#include "examples/torch/bfloat16_products.h"
#include "examples/torch/fused_adamw.h"
#include "examples/torch/module_run.h"
#include "trainer/torch/data_parallel_module.h"
#include "trainer/training/schedule.h"

using namespace ddprun;
using namespace ddprun::trainer;
using namespace example;
using namespace example::gpt;
using torch::nn::Embedding;
namespace nn = torch::nn;  // its LayerNorm is not that of example::gpt
using torch::optim::AdamWOptions;

namespace {

// y = x W + b; the weight has the shape inputs × outputs (transformers' Conv1D).
struct LinearImpl : torch::nn::Module {
    LinearImpl(std::int64_t inputs, std::int64_t outputs) {
        weight = register_parameter("weight", torch::empty({inputs, outputs}));
        bias = register_parameter("bias", torch::zeros({outputs}));
    }
    torch::Tensor forward(const torch::Tensor& x) {
        auto sizes = x.sizes().vec();
        sizes.back() = weight.size(1);
        return torch::addmm(bias, x.reshape({-1, x.size(-1)}), weight).view(sizes);
    }
    torch::Tensor weight, bias;
};
TORCH_MODULE(Linear);

struct Attention : torch::nn::Module {
    explicit Attention(const GptShape& shape) : heads(shape.heads) {
        c_attn = register_module("c_attn", Linear(shape.width, 3 * shape.width));
        c_proj = register_module("c_proj", Linear(shape.width, shape.width));
    }
    torch::Tensor forward(const torch::Tensor& x) {
        const std::int64_t rows = x.size(0), length = x.size(1), width = x.size(2);
        const auto parts = c_attn(x).split(width, 2);
        const auto part = [&](std::size_t i) {
            return parts[i].view({rows, length, heads, -1}).transpose(1, 2);
        };
#if TORCH_VERSION_MAJOR >= 2
        const auto y = at::scaled_dot_product_attention(part(0), part(1), part(2), {}, 0.0,
                                                        /*is_causal=*/true);
#else
        const auto later = torch::ones({length, length}, x.options().dtype(torch::kBool)).triu(1);
        const auto scores =
            part(0).matmul(part(1).transpose(2, 3)) / std::sqrt(static_cast<double>(width / heads));
        const auto y = scores.masked_fill(later, -INFINITY).softmax(3).matmul(part(2));
#endif
        return c_proj(y.transpose(1, 2).reshape({rows, length, width}));
    }
    std::int64_t heads;
    Linear c_attn{nullptr}, c_proj{nullptr};
};

struct Mlp : torch::nn::Module {
    explicit Mlp(std::int64_t width) {
        c_fc = register_module("c_fc", Linear(width, 4 * width));
        c_proj = register_module("c_proj", Linear(4 * width, width));
    }
    torch::Tensor forward(const torch::Tensor& x) { return c_proj(torch::gelu(c_fc(x), "tanh")); }
    Linear c_fc{nullptr}, c_proj{nullptr};
};

struct Layer : torch::nn::Module {
    explicit Layer(const GptShape& shape) {
        ln_1 = register_module("ln_1", nn::LayerNorm(nn::LayerNormOptions({shape.width})));
        attn = register_module("attn", std::make_shared<Attention>(shape));
        ln_2 = register_module("ln_2", nn::LayerNorm(nn::LayerNormOptions({shape.width})));
        mlp = register_module("mlp", std::make_shared<Mlp>(shape.width));
    }
    torch::Tensor forward(const torch::Tensor& x) {
        const auto y = x + attn->forward(ln_1(x));
        return y + mlp->forward(ln_2(y));
    }
    nn::LayerNorm ln_1{nullptr}, ln_2{nullptr};
    std::shared_ptr<Attention> attn;
    std::shared_ptr<Mlp> mlp;
};

// The logits, or with targets the mean loss.
struct GptModule : torch::nn::Module {
    explicit GptModule(const GptShape& shape) {
        // A module between, because the names have "transformer." in front.
        auto parts = register_module("transformer", std::make_shared<torch::nn::Module>("parts"));
        wte = parts->register_module("wte", Embedding(shape.vocabulary, shape.width));
        wpe = parts->register_module("wpe", Embedding(shape.context, shape.width));
        h = parts->register_module("h", torch::nn::ModuleList());
        for (int i = 0; i < shape.layers; ++i) h->push_back(std::make_shared<Layer>(shape));
        ln_f = parts->register_module("ln_f", nn::LayerNorm(nn::LayerNormOptions({shape.width})));
    }
    torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& targets = {}) {
        const Bfloat16Products products(tokens.is_cuda());
        auto x = wte(tokens) + wpe(torch::arange(tokens.size(1), tokens.options()));
        for (const auto& layer : *h) x = layer->as<Layer>()->forward(x);
        const auto logits = ln_f(x).matmul(wte->weight.t());  // the embedding, again
        if (!targets.defined()) return logits.to(torch::kFloat32);
        return torch::nn::functional::cross_entropy(logits.flatten(0, 1), targets.flatten());
    }
    Embedding wte{nullptr}, wpe{nullptr};
    torch::nn::ModuleList h{nullptr};
    nn::LayerNorm ln_f{nullptr};
};

// The network and its text, from a file or anew.
struct Start {
    GptShape shape;
    std::vector<float> parameters;
    Text text;
};

Start make_start(const GptOptions& options) {
    const std::string text = or_throw(load_text(options.text));
    const std::string& file = options.evaluate.empty() ? options.init : options.evaluate;
    std::string vocabulary = vocabulary_of(text);
    GptShape shape;
    std::vector<float> parameters;
    if (file.empty()) {
        shape = or_throw(shape_of(options, vocabulary.size()));
        parameters = first_parameters(shape, options.seed);
    } else {
        ModelFile model = or_throw(read_model(file));
        shape = model.shape;
        parameters = std::move(model.parameters);
        vocabulary = model.vocabulary.value_or(vocabulary);
    }
    or_throw(check_vocabulary(shape, vocabulary.size()));
    Text cut = or_throw(Text::make(text, vocabulary, shape.context));
    return {shape, std::move(parameters), std::move(cut)};
}

// Copies the block of all parameters into the module.
void set_parameters(GptModule& module, const GptShape& shape, std::vector<float>& block) {
    const torch::NoGradGuard guard;
    const auto named = module.named_parameters();
    for (const auto& tensor : tensors(shape)) {
        auto to = named[tensor.name];
        to.copy_(torch::from_blob(block.data() + tensor.offset, to.sizes()));
    }
}

// The objects of a training, and its step.
struct Trainer {
    const GptOptions& options;
    ModuleRun& run;
    const Text& text;
    GptModule& net;
    const torch::Device device;

    // A batch as two tensors: tokens, and those that follow them.
    std::pair<torch::Tensor, torch::Tensor> tensors_of(const Batch& batch) const {
        const auto tensor = [&](const std::vector<int>& values) {
            return torch::tensor(values, torch::kInt64).view({batch.rows, batch.length}).to(device);
        };
        return {tensor(batch.tokens), tensor(batch.targets)};
    }

    // This rank's part of the validation windows.
    WeightedMean validate() {
        const torch::NoGradGuard guard;
        WeightedMean mean;
        std::vector<std::int64_t> windows;
        const std::int64_t count = text.validation_windows();
        for (std::int64_t i = run.rank(); i < count; i += run.world()) {
            windows.push_back(i);
            if (i + run.world() < count && std::ssize(windows) < options.batch) continue;
            const auto [x, y] = tensors_of(text.validation(windows));
            mean.add(net.forward(x, y).item<double>(), static_cast<double>(windows.size()));
            windows.clear();
        }
        return mean;
    }

    // Several passes with accumulation, fewer at the end of an epoch. Each window counts the same.
    void step(DataParallelModule<GptModule>& model, FusedAdamW& optimizer) {
        std::vector<Batch> batches;
        int rows = 0;
        for (int i = 0; i < options.accumulate && run.left() > 0; ++i) {
            batches.push_back(text.training(run.next(options.batch)));
            rows += batches.back().rows;
        }
        optimizer.zero_grad();
        double sum = 0;
        for (std::size_t i = 0; i < batches.size(); ++i) {
            std::optional<ModuleReducer::NoSync> quiet;
            if (i + 1 < batches.size()) quiet.emplace(model.reducer());
            const auto [x, y] = tensors_of(batches[i]);
            const auto loss = model.forward(x, y);
            (loss * (static_cast<double>(batches[i].rows) / rows)).backward();
            sum += loss.item<double>() * batches[i].rows;
        }
        const double most = options.clip > 0 ? options.clip : INFINITY;
        const double norm = torch::nn::utils::clip_grad_norm_(net.parameters(), most);
        // Equal on all ranks, so all of them end here.
        const std::string where = "the gradients of step " + std::to_string(run.steps() + 1);
        if (!std::isfinite(norm))
            throw Failure({ErrorCode::malformed, where + " are not finite; try a lower --lr"});
        const Schedule schedule{options.rate, 0, static_cast<double>(options.warm_up),
                                static_cast<double>(options.steps), options.final_rate};
        const double rate = rate_at(schedule, static_cast<double>(run.steps() + 1), 1);
        for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
        optimizer.step();
        run.count(sum / rows, rows);
        run.count(model.times());
        run.end_step();
    }

    // Lets the network go on after a line's end.
    std::string sample(const std::string& vocabulary, std::int64_t context) {
        const torch::NoGradGuard guard;
        std::string out = "\n";
        const auto one = [](std::size_t token) {
            return torch::full({1, 1}, static_cast<std::int64_t>(token), torch::kInt64);
        };
        auto tokens = one(vocabulary.find('\n') % vocabulary.size());
        for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(options.sample); ++i) {
            const auto last = tokens.slice(1, std::max<std::int64_t>(tokens.size(1) - context, 0));
            const auto logits =
                net.forward(last.to(device)).select(1, -1).to(torch::kCPU).contiguous();
            const double random = (1 + double{uniform(options.seed, i)}) / 2;
            const auto next = static_cast<std::size_t>(
                token_at({logits.data_ptr<float>(), vocabulary.size()},
                         static_cast<int>(vocabulary.size()), 0.8f, random));
            tokens = torch::cat({tokens, one(next)}, 1);
            out += vocabulary[next];
        }
        return out;
    }
};

RunOptions run_options(const GptOptions& o) {
    RunOptions run = o;
    run.program = "gpt_torch";
    if (o.backend == Backend::automatic)
        run.backend = torch::cuda::is_available() ? Backend::nccl : Backend::gloo;
    return run;
}

FusedAdamW optimizer_of(GptModule& net, const GptOptions& options) {
    std::vector<torch::Tensor> matrices, others;
    for (const auto& p : net.parameters()) (p.dim() > 1 ? matrices : others).push_back(p);
    auto settings = AdamWOptions(1e-3).betas({0.9, 0.95}).eps(1e-8).weight_decay(0);
    std::vector<torch::optim::OptimizerParamGroup> groups{{matrices}, {others}};
    for (auto& group : groups) group.set_options(std::make_unique<AdamWOptions>(settings));
    static_cast<AdamWOptions&>(groups[0].options()).weight_decay(options.decay);
    return FusedAdamW(groups, settings);
}

int train(const GptOptions& options) {
    auto stop = StopRequest::from_environment();
    Start start = make_start(options);
    ModuleRun run(run_options(options), {start.text.training_windows(), options.seed},
                  std::move(stop));
    const torch::Device device(run.gpu() < 0 ? "cpu" : "cuda:" + std::to_string(run.gpu()));
    auto net = std::make_shared<GptModule>(start.shape);
    set_parameters(*net, start.shape, start.parameters);
    net->to(device);
    auto optimizer = optimizer_of(*net, options);
    Trainer trainer{options, run, start.text, *net, device};
    Metadata words = words_of_model(start.shape, start.text.vocabulary());
    words["--seed"] = std::to_string(options.seed);
    words["text"] = checksum_of(std::as_bytes(start.text.tokens()));
    run.begin(*net, optimizer, words, [&] { return trainer.validate(); });
    if (options.evaluate.empty()) {
        DataParallelOptions chosen;
        chosen.reducer.bucket_bytes = static_cast<std::size_t>(options.bucket_kib) << 10;
        auto model = or_throw(DataParallelModule<GptModule>::make(run.group(), net, chosen));
        while (run.goes_on()) trainer.step(model, optimizer);
    }
    if (run.stopped()) return run.finish("");
    if (run.rank() == 0 && !options.save.empty()) save_file(options.save, *net, words);
    if (run.rank() == 0 && options.sample > 0 && options.evaluate.empty())
        std::printf(
            "--- sample%s\n---\n",
            printable_text(trainer.sample(start.text.vocabulary(), start.shape.context)).c_str());
    char line[64];
    std::snprintf(line, sizeof line, "validation=%.9g", run.validation());
    return run.finish(line);
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("gpt_torch", [&] {
        const auto options = or_throw(parse_gpt_options({argv + 1, argv + argc}, "gpt_torch"));
        try {
            return options.help ? std::fputs(kGptHelp, stdout) < 0 : train(options);
        } catch (const std::bad_alloc&) {
            throw Failure(no_memory(options));
        }
    });
}
