// The help text of `gpt`, the table of its options, and the sizes that have names.
#include "examples/gpt/gpt_options.h"

#include "examples/option_table.h"

namespace example::gpt {

using ddprun::Error;
using ddprun::ErrorCode;
using ddprun::Result;

const char kGptHelp[] =
    "Usage: gpt [options]     under ddprun or torchrun, or alone\n"
    "Trains a GPT-2 on characters, data parallel. Ends with a sample of text and a line\n"
    "`validation=... checksum=...`.\n"
    "  --size NAME           character: 4 layers, 6 heads, width 192, context 128 (the default);\n"
    "                        gpt2: 12 layers, 12 heads, width 768, context 1024, 50257 tokens\n"
    "  --layers N, --heads N, --width N, --context N   another size\n"
    "  --vocabulary N        rows of the embedding (the text's characters)\n"
    "  --text FILE           the text (the licenses in /usr/share/common-licenses)\n"
    "  --steps N             steps in all (200)\n"
    "  --batch N             windows of text per rank and backward pass (8)\n"
    "  --accumulate N        backward passes per step (1)\n"
    "  --lr X, --final-lr X  learning rate, and the one to which it falls as half a cosine (2e-3, "
    "2e-4)\n"
    "  --warm-up N           steps up to the full rate (20)\n"
    "  --decay X             weight decay of matrices (0.1)\n"
    "  --clip X              greatest norm of the gradients (1; 0: no limit)\n"
    "  --bucket-kib N        gradients that travel together (25600; the first 1024 at most)\n"
    "  --seed N              of weights, order and sample (1)\n"
    "  --init FILE           begin with the weights of this safetensors file, and with its shape\n"
    "  --save FILE           write the weights at the end, as transformers' GPT2LMHeadModel has "
    "them\n"
    "  --evaluate FILE       print the validation loss of these weights and end\n"
    "  --sample N            characters to print at the end (200)\n"
    "  --snapshot-dir DIR    write snapshots here, and resume from the newest valid one\n"
    "  --snapshot-every N    steps between snapshots (20); --snapshot-keep N: how many to keep "
    "(3)\n"
    "  --log-every N         steps between lines of progress (10)\n"
    "  --validate-every N    steps between validations over all ranks (0: after each epoch)\n"
    "  --metrics FILE        add a line of JSON for each validation; trainer/training/plot.py "
    "draws it\n"
    "  --timeout N           seconds for meeting and for each collective (300)\n"
    "  --backend NAME        auto, gloo or nccl (auto)\n"
    "  --precision NAME      on GPUs only: bf16 or f32 (bf16)\n"
    "  --crash-at-step N     on purpose, before step N, in the first generation only\n"
    "  --crash-rank R        the rank that crashes (0)\n"
    "Exit: 0 done, 1 failed, 2 wrong option or text, 143 told to stop (SIGTERM, DDPRUN_STOP_FILE), "
    "after a\n"
    "last snapshot.\n";

namespace {

struct Size {
    int layers, heads, width, context, vocabulary;
};
const std::map<std::string, Size> kSizes{{"character", {4, 6, 192, 128, 0}},
                                         {"gpt2", {12, 12, 768, 1024, 50257}}};

bool set_size(GptOptions& options, const std::string& name) {
    options.size = name;
    return kSizes.contains(name);
}

// All options that take a value.
const std::map<std::string, Setter<GptOptions>>& setters() {
    using O = GptOptions;
    static const std::map<std::string, Precision> kPrecisions{{"bf16", Precision::bfloat16},
                                                              {"f32", Precision::float32}};
    static const auto kSetters =
        with_run_options<O>({{"--size", set_size},
                             {"--layers", number(&O::layers, 1, 1000)},
                             {"--heads", number(&O::heads, 1, 1000)},
                             {"--width", number(&O::width, 1, 1e5)},
                             {"--context", number(&O::context, 1, 1e5)},
                             {"--vocabulary", number(&O::vocabulary, 1, 1e7)},
                             {"--text", text(&O::text)},
                             {"--batch", number(&O::batch, 1, 1e5)},
                             {"--accumulate", number(&O::accumulate, 1, 1e6)},
                             {"--lr", number(&O::rate, 0, 1e3)},
                             {"--final-lr", number(&O::final_rate, 0, 1e3)},
                             {"--warm-up", number(&O::warm_up, 0, 1e9)},
                             {"--decay", number(&O::decay, 0, 1e3)},
                             {"--clip", number(&O::clip, 0, 1e9)},
                             {"--bucket-kib", number(&O::bucket_kib, 1, 1e6)},
                             {"--seed", number(&O::seed, 0, 1e15)},
                             {"--init", text(&O::init)},
                             {"--save", text(&O::save)},
                             {"--evaluate", text(&O::evaluate)},
                             {"--sample", number(&O::sample, 0, 1e6)},
                             {"--validate-every", number(&O::validate_every, 0, 1e15)},
                             {"--backend", word(&O::backend, kBackends)},
                             {"--precision", word(&O::precision, kPrecisions)}});
    return kSetters;
}

Needs<GptOptions> needs(const std::string& program) {
    using O = GptOptions;
    auto needs = common_needs<O>();
    const auto has_no_file = [](const O& o) { return o.init.empty() && o.evaluate.empty(); };
    add_needs<O>(needs, {"--size", "--layers", "--heads", "--width", "--context", "--vocabulary"},
                 has_no_file, "with --init or --evaluate, whose file has a shape");
    const auto trains = [](const O& o) { return o.evaluate.empty(); };
    add_needs<O>(needs,
                 {"--steps", "--accumulate", "--lr", "--final-lr", "--warm-up", "--decay", "--clip",
                  "--bucket-kib", "--seed", "--init", "--save", "--sample", "--snapshot-dir",
                  "--log-every", "--validate-every", "--metrics", "--crash-at-step"},
                 trains, "with --evaluate");
    add_needs<O>(
        needs, {"--validate-every", "--precision"}, [=](const O&) { return program == "gpt"; },
        "in " + program + "; it is for gpt");
    needs.push_back({"--precision",
                     [](const O& o) { return o.backend != ddprun::trainer::Backend::gloo; },
                     "on CPUs, where gpt works in float32"});
    return needs;
}

}  // namespace

Result<GptOptions> parse_gpt_options(const std::vector<std::string>& arguments,
                                     const std::string& program) {
    return parse_options(setters(), arguments, program, needs(program));
}

Result<GptShape> shape_of(const GptOptions& o, std::size_t characters) {
    const Size& size = kSizes.at(o.size);
    auto chosen = [](int option, int otherwise) { return option > 0 ? option : otherwise; };
    GptShape shape;
    shape.vocabulary =
        chosen(o.vocabulary, size.vocabulary ? size.vocabulary : static_cast<int>(characters));
    shape.context = chosen(o.context, size.context);
    shape.layers = chosen(o.layers, size.layers);
    shape.heads = chosen(o.heads, size.heads);
    shape.width = chosen(o.width, size.width);
    if (auto good = check_shape(shape); !good) return good.error();
    return shape;
}

Error no_memory(const GptOptions& options) {
    std::string parameters = "the model";
    if (options.init.empty() && options.evaluate.empty())
        if (auto shape = shape_of(options, 256))
            parameters = std::to_string(parameter_count(*shape) / 1'000'000) + " M parameters";
    return Error(ErrorCode::unavailable,
                 "there is not enough memory for " + parameters + " and batches of " +
                     std::to_string(options.batch) +
                     " windows; take a smaller --width, --layers, --vocabulary or --batch");
}

}  // namespace example::gpt
