// The help text of `train`, and a table that parses its options.
#include "examples/train_options.h"

#include "examples/option_table.h"

namespace example {

const char kTrainHelp[] =
    "Usage: train [options]     under ddprun or torchrun, or alone\n"
    "Trains a small perceptron, data parallel, and ends with a line `loss=... checksum=...`.\n"
    "  --steps N             steps in all (200)\n"
    "  --batch N             samples per rank and step (32)\n"
    "  --hidden N            hidden units (64)\n"
    "  --samples N           samples that are made when there is no --data (4096)\n"
    "  --data FILE           CSV of numbers, the last column is the target\n"
    "  --lr X, --momentum X  of the optimizer (0.02, 0.9)\n"
    "  --reference-batch N   --lr is for N samples over all ranks and grows with them (0: for "
    "any)\n"
    "  --warm-up X           epochs up to the full rate (0)\n"
    "  --cosine X            the rate falls to 0 by epoch X, as half a cosine (0: it stays)\n"
    "  --clip X              greatest norm of the gradients (0: no limit)\n"
    "  --zero 1              each rank keeps a share of the optimizer's state (ZeRO, stage 1), on "
    "CPUs,\n"
    "                        with --dtype float32\n"
    "  --dtype NAME          of parameters and gradients: float32, bfloat16 or float16, the last "
    "two "
    "on\n"
    "                        CPUs only (float32); the optimizer always works in float32\n"
    "  --loss-scale X        with float16: the first scale of the loss (65536)\n"
    "  --bucket-kib N        gradients that travel together (25600; the first 1024 at most)\n"
    "  --seed N              of weights, made data and order (1)\n"
    "  --loader-threads N    threads that put batches together ahead of the training (1)\n"
    "  --snapshot-dir DIR    write snapshots here, and resume from the newest valid one\n"
    "  --snapshot-every N    steps between snapshots (20); --snapshot-keep N: how many to keep "
    "(3)\n"
    "  --log-every N         steps between lines of progress (10)\n"
    "  --validate-every N    steps between validations over all ranks (0: after each epoch)\n"
    "  --patience N          stop early after more than N validations without a better one (0: "
    "never)\n"
    "  --verify-replicas N   steps between comparisons of the ranks' parameters, after the first "
    "10 "
    "(0: none)\n"
    "  --metrics FILE        add a line of JSON for each validation; trainer/training/plot.py "
    "draws it\n"
    "  --step-time-ms N      milliseconds to sleep in each step (0)\n"
    "  --timeout N           seconds for meeting and for each collective (300)\n"
    "  --backend NAME        auto, gloo or nccl (auto)\n"
    "  --crash-at-step N     on purpose, before step N, in the first generation only\n"
    "  --crash-rank R        the rank that crashes (0)\n"
    "  --crash-signal S      by this signal (9), or --crash-exit CODE by this exit code\n"
    "Exit: 0 done, 1 failed, 2 wrong option or data, 143 told to stop (SIGTERM,\n"
    "DDPRUN_STOP_FILE), after a last snapshot.\n";

namespace {

// All options that take a value.
const std::map<std::string, Setter<TrainOptions>>& setters() {
    using O = TrainOptions;
    using ddprun::trainer::DataType;
    static const std::map<std::string, DataType> kTypes{{"float32", DataType::float32},
                                                        {"bfloat16", DataType::bfloat16},
                                                        {"float16", DataType::float16}};
    static const auto kSetters =
        with_run_options<O>({{"--batch", number(&O::batch, 1, 1e6)},
                             {"--hidden", number(&O::hidden, 1, 1e6)},
                             {"--samples", number(&O::samples, 1, 1e8)},
                             {"--lr", number(&O::rate, 0, 1e6)},
                             {"--momentum", number(&O::momentum, 0, 1)},
                             {"--reference-batch", number(&O::reference_batch, 0, 1e9)},
                             {"--warm-up", number(&O::warm_up, 0, 1e6)},
                             {"--cosine", number(&O::cosine_end, 0, 1e6)},
                             {"--clip", number(&O::clip, 0, 1e9)},
                             {"--zero", number(&O::zero, 0, 1)},
                             {"--dtype", word(&O::dtype, kTypes)},
                             {"--loss-scale", number(&O::loss_scale, 1, 1e38)},
                             {"--bucket-kib", number(&O::bucket_kib, 1, 1e6)},
                             {"--seed", number(&O::seed, 0, 1e19)},
                             {"--data", text(&O::data)},
                             {"--loader-threads", number(&O::loader_threads, 1, 1000)},
                             {"--validate-every", number(&O::validate_every, 0, 1e15)},
                             {"--verify-replicas", number(&O::verify_replicas, 0, 1e15)},
                             {"--patience", number(&O::patience, 0, 1e6)},
                             {"--step-time-ms", number(&O::step_time_ms, 0, 1e7)},
                             {"--backend", word(&O::backend, kBackends)},
                             {"--crash-signal", number(&O::crash_signal, 1, 64)},
                             {"--crash-exit", number(&O::crash_exit, 0, 255)}});
    return kSetters;
}

Needs<TrainOptions> needs() {
    using O = TrainOptions;
    auto needs = common_needs<O>();
    needs.push_back({"--loss-scale",
                     [](const O& o) { return o.dtype == ddprun::trainer::DataType::float16; },
                     "without --dtype float16"});
    needs.push_back({"--samples", [](const O& o) { return o.data.empty(); }, "with --data"});
    needs.push_back(
        {"--crash-signal", [](const O& o) { return o.crash_exit < 0; }, "with --crash-exit"});
    // The cosine begins where the warm-up ends.
    needs.push_back({"--cosine",
                     [](const O& o) { return o.cosine_end == 0 || o.cosine_end > o.warm_up; },
                     "up to the end of --warm-up"});
    return needs;
}

}  // namespace

ddprun::Result<TrainOptions> parse_train_options(const std::vector<std::string>& arguments) {
    auto options = parse_options(setters(), arguments, "train", needs());
    if (options && options->zero != 0 && options->dtype != ddprun::trainer::DataType::float32)
        return ddprun::usage_error("--zero 1 shares out a state of float32; leave out --dtype");
    return options;
}

}  // namespace example
