// The grammar of the command line, as argparse reads torchrun's: words and PET_ variables in, typed
// values out, or one line that says what is wrong and what to write in its place.
//
// Dashes and underscores are the same; `--opt value` and `--opt=value`; a short option may carry
// its value (-r3); a prefix that fits one option only is that option; the last of two wins; options
// end at the first positional, which is the program, and everything behind it is the worker's,
// untouched. A PET_ variable stands in for an option that the command line does not give. Unset is
// an empty optional: what a missing value means is decided in plan.h. Pure.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/machine/stop_policy.h"
#include "agent/output/output_plan.h"
#include "base/error.h"
#include "launcher/options/option_values.h"
#include "launcher/options/rdzv_conf.h"
#include "rendezvous/ledger_format/ledger_place.h"
#include "rendezvous/store/limits.h"
#include "slurm/worker_variables.h"

namespace ddprun::launcher {

using Environment = std::map<std::string, std::string>;

enum class DryRunFormat { text, json };
enum class CheckFormat { text, json };

// What the user said, and nothing that we concluded from it.
struct Options {
    // Nothing else is checked then; print it (option_text.h) and exit 0.
    bool help = false, version = false, print_man = false;
    std::optional<std::string> print_completion;  // the shell
    // All is checked, planned and printed, and nothing starts.
    std::optional<DryRunFormat> dry_run;
    // The nodes meet and are looked at, in place of a start (check_report.h).
    std::optional<CheckFormat> check;

    // Who meets.
    std::optional<NodeRange> nnodes;
    std::optional<WorkersPerNode> nproc_per_node;
    std::optional<int> node_rank;
    bool standalone = false;

    // Where they meet.
    std::optional<std::string> rdzv_backend;  // static, c10d or ddprun; accepted, all mean our own
    std::optional<HostPort> rdzv_endpoint;
    std::optional<std::string> rdzv_id;
    RdzvConf rdzv_conf;
    std::optional<std::string> master_addr;
    std::optional<int> master_port;
    std::optional<std::string> local_addr, interface;
    std::optional<PortRange> ports;
    std::optional<rendezvous::LedgerPlace> ledger;  // without a job
    std::optional<std::string> secret_file;
    std::optional<rendezvous::IdentityMode> identity;

    // When it fails, and how long things may take.
    std::optional<RestartLimit> max_restarts;
    std::optional<int> crash_loop;
    std::optional<std::chrono::milliseconds> hang_timeout;  // 0: off
    std::optional<bool> blame;
    std::optional<rendezvous::OnJoin> on_join;
    std::optional<std::chrono::milliseconds> join_interval;
    std::optional<std::chrono::milliseconds> lease, join_timeout, last_call, shutdown_timeout;
    std::optional<std::chrono::milliseconds> unkillable_timeout;
    std::optional<std::string> on_failure;
    std::vector<int> signals;  // beyond those that are always handled
    std::optional<std::chrono::milliseconds> stop_before;
    std::optional<int> stop_signal;
    std::vector<int> requeue_signals;
    std::optional<agent::RequeueMode> requeue;
    bool end_headless = true;
    std::string signal_names;  // as given, for the workers; empty: not given

    // Output.
    std::optional<std::string> log_dir;
    StreamsPerRank redirects, tee;
    std::vector<int> local_ranks_filter;  // empty: all
    std::optional<bool> label;            // --label / --no-label
    std::optional<std::string> prefix_template;
    std::vector<std::string> stdout_filters, stderr_filters;
    std::optional<agent::Overflow> console_overflow;
    int verbosity = 0;  // -2 errors, -1 quiet, 0, 1 verbose; LOGLEVEL

    // The worker.
    std::optional<std::string> role;
    bool module = false, no_python = false, run_path = false;
    bool virtual_local_rank = false;
    bool task_per_worker = false;
    std::optional<agent::CpuBinding> numa_binding;
    std::optional<std::string> python;
    std::optional<slurm::WorkerVariables> slurm_env;
    std::string program;
    std::vector<std::string> arguments;

    // The workers' store.
    std::vector<store::Network> store_allow;
    store::Limits store_limits;

    std::vector<std::string> warnings;  // sentences for the log
};

// `words` are those behind the program's own name. Possible errors: usage.
Result<Options> parse_options(const std::vector<std::string>& words,
                              const Environment& environment);

}  // namespace ddprun::launcher
