// The help text and the table of the options.
#include "examples/parallel/parallel_options.h"

#include "examples/option_table.h"

namespace example {

const char kParallelHelp[] =
    "  --parts N            ranks that share one replica of the model (2); one rank has all of it\n"
    "  --batch N            samples of a step, over all replicas (64)\n"
    "  --micro-batches N    of a replica's share; pipeline only (8)\n"
    "  --steps N            steps in all (40)\n"
    "  --lr X               learning rate (0.3)\n"
    "  --snapshot-dir DIR   write snapshots here, and resume from the newest valid one\n"
    "  --snapshot-every N   steps between snapshots (10)\n"
    "  --checked-launches N so many calls of each pair of ranks are compared over all groups (0)\n"
    "  --crash-at-step N    on purpose, before step N, in the first generation only\n"
    "  --crash-rank R       the rank that crashes (1)\n"
    "Exit: 0 done, 1 failed, 2 wrong option, 143 told to stop (SIGTERM, DDPRUN_STOP_FILE), after a "
    "last\n"
    "snapshot.\n";

ddprun::Result<ParallelOptions> parse_parallel_options(const std::vector<std::string>& arguments,
                                                       const std::string& program) {
    using O = ParallelOptions;
    auto needs = common_needs<O>();
    needs.push_back({"--micro-batches", [&](const O&) { return program == "pipeline"; },
                     "in " + program + "; it is for pipeline"});
    return parse_options<O>({{"--parts", number(&O::parts, 1, 1024)},
                             {"--batch", number(&O::batch, 1, 1e6)},
                             {"--micro-batches", number(&O::micro_batches, 1, 1e4)},
                             {"--steps", number(&O::steps, 0, 1e15)},
                             {"--lr", number(&O::rate, 0, 1e3)},
                             {"--snapshot-dir", text(&O::snapshot_dir)},
                             {"--snapshot-every", number(&O::snapshot_every, 1, 1e15)},
                             {"--checked-launches", number(&O::checked_launches, 0, 1e15)},
                             {"--crash-at-step", number(&O::crash_at_step, 0, 1e15)},
                             {"--crash-rank", number(&O::crash_rank, 0, 1e6)}},
                            arguments, program, needs);
}

}  // namespace example
