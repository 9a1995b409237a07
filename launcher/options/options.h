// The grammar of the command line, as argparse reads torchrun's. In: words, PET_ variables and
// configuration files. Out: typed values, or one line that says what is wrong and what to write
// instead.
//
// - Dashes and underscores in names are equal.
// - `--opt value` and `--opt=value` are equal; a short option may have its value attached (-r3).
// - An abbreviation that fits one option only means that option.
// - If an option is given twice, the last one counts.
// - The first word that is no option is the program. Everything behind it goes to the worker
//   unchanged.
// - A PET_ variable stands in for an option that is not on the command line, and the user's
//   configuration file for one that neither has, and the site's file for the rest.
//
// An option that was not given is an empty optional; plan.h decides what that means. Pure.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/output/output_plan.h"
#include "agent/parts/stop_policy.h"
#include "agent/parts/warm_mode.h"
#include "base/error.h"
#include "base/time.h"
#include "launcher/options/config_file.h"
#include "launcher/options/option_values.h"
#include "launcher/options/rdzv_conf.h"
#include "rendezvous/ledger_format/ledger_place.h"
#include "slurm/worker_variables.h"
#include "store/protocol/limits.h"

namespace ddprun::launcher {

using Environment = std::map<std::string, std::string>;

enum class DryRunFormat { text, json };
enum class CheckFormat { text, json };

// A rehearsal is played instead of the job.
struct RehearsalOptions {
    std::vector<std::string> faults;  // empty: no rehearsal
    int steps = 100;
    std::optional<int> seed;  // none: drawn
    std::string pattern;      // a regular expression of Python; empty: found by itself
    std::string format = "text";
    std::string first_given;  // an option --rehearse-…, which needs --rehearse; empty: none
};

// Where an option's value came from. The later wins.
enum class OptionSource { site, file, environment, command_line };

struct OptionOrigin {
    const OptionRow* row = nullptr;
    std::string value;  // empty: the option takes none
    OptionSource source = OptionSource::command_line;
    std::string where;  // "/etc/ddprun/ddprun.toml:3", "PET_NNODES", "--nproc_per_node"
};

// What was read from disk (config_files.h).
struct ConfigFiles {
    std::optional<ConfigFile> site, own;
    std::vector<std::string> warnings;  // why the site's file is ignored
};

// How long after its requeue a job may start again. That is longer than leaving the nodes takes: a
// job that leaves later than that waits for Slurm's own delay.
inline constexpr std::chrono::seconds kRequeueBegin{10};

// What the user said. Nothing here was concluded from it.
struct Options {
    // One of these only prints a text (option_text.h) and exits with 0. Nothing else is checked
    // then.
    bool help = false, brief_help = false, help_all = false, version = false, print_man = false;
    std::optional<std::string> print_completion;  // the shell's name
    std::optional<std::string> config;            // the user's file, already read
    std::optional<std::string> print_sbatch;      // the script's name (sbatch_text.h)
    // Check and plan everything, print the plan, start nothing.
    std::optional<DryRunFormat> dry_run;
    // Test the allocation instead of starting the job (check_report.h).
    std::optional<CheckFormat> check;
    // Play faults with the program instead of the start.
    RehearsalOptions rehearsal;

    // Nodes and workers.
    std::optional<NodeRange> nnodes;
    std::optional<WorkersPerNode> nproc_per_node;
    std::optional<int> node_rank;
    bool standalone = false;

    // Where they meet.
    std::optional<std::string> rdzv_backend;  // static, c10d or ddprun; all mean ddprun's own
    std::optional<HostPort> rdzv_endpoint;
    std::optional<std::string> rdzv_id;
    RdzvConf rdzv_conf;
    std::optional<std::string> master_addr;
    std::optional<int> master_port;
    std::optional<std::string> local_addr, interface;
    std::optional<PortRange> ports;
    std::optional<rendezvous::LedgerPlace> ledger;  // not yet the place of one job
    std::optional<std::string> etcd_user_file, etcd_cacert, etcd_cert, etcd_key;
    std::optional<std::string> secret_file;
    std::optional<rendezvous::IdentityMode> identity;

    // Failures, restarts, stops, and time limits.
    std::optional<int> max_restarts;  // or rendezvous::kAutoRestarts
    std::optional<int> crash_loop;
    std::optional<Duration> hang_timeout;  // 0: off
    bool hang_auto = false;
    bool flight_recorder = false;
    std::optional<bool> blame;
    std::optional<rendezvous::OnJoin> on_join;
    std::optional<Duration> join_interval;
    std::optional<Duration> lease, join_timeout, last_call, requeue_wait, shutdown_timeout;
    std::optional<Duration> unkillable_timeout;
    std::optional<Duration> wait_for_helpers;
    std::optional<std::string> on_failure, on_event;
    std::vector<int> signals;  // besides those that always stop the job
    std::optional<Duration> stop_before;
    std::optional<int> stop_signal;
    std::vector<int> requeue_signals;
    std::optional<agent::RequeueMode> requeue;
    std::optional<bool> leaves_on_sigterm;  // --on-sigterm; none: where that is the default
    // --requeue-begin; none: after Slurm's own delay.
    std::optional<std::chrono::seconds> requeue_begin = kRequeueBegin;
    bool end_headless = true;
    std::string signal_names;  // --signals-to-handle as given, for the workers; empty: not given

    // Output of the workers and log lines.
    std::optional<std::string> log_dir;
    StreamsPerRank redirects, tee;
    std::vector<int> local_ranks_filter;  // empty: all
    std::optional<bool> label;            // --label / --no-label
    std::optional<std::string> prefix_template;
    std::vector<std::string> stdout_filters, stderr_filters;
    std::optional<agent::Overflow> console_overflow;
    bool collapse = true;            // a terminal shows once what several ranks print
    bool pty = true;                 // workers print to a terminal where ddprun does
    int verbosity = 0;               // -2 errors, -1 warnings, 0 normal, 1 debug; see also LOGLEVEL
    std::optional<bool> timestamps;  // of ddprun's own lines; none: auto
    std::optional<Duration> status_every;
    bool log_json = false;

    // What a worker runs.
    std::optional<std::string> role;
    bool module = false, no_python = false, run_path = false;
    bool virtual_local_rank = false;
    bool pmi = false;
    bool task_per_worker = false;
    std::optional<agent::CpuBinding> numa_binding;
    std::optional<std::string> python;
    std::optional<agent::warm::Mode> warm;
    bool framework_stop = false;
    bool set_aside_torn = false;
    std::optional<slurm::WorkerVariables> slurm_env;
    std::string program;
    std::vector<std::string> arguments;

    // Access to the workers' store and its limits.
    std::vector<store::Network> store_allow;
    store::Limits store_limits;

    std::vector<std::string_view> missing;  // products that this ddprun was built without
    std::vector<std::string> warnings;      // complete sentences for the log
    std::vector<OptionOrigin> origins;      // of each option given, in the order of the table
};

// `words` are those after ddprun's own name. Possible errors: usage.
// `missing`: the products that this ddprun was built without (product_names.h).
Result<Options> parse_options(const std::vector<std::string>& words, const Environment& environment,
                              const ConfigFiles& files = {},
                              const std::vector<std::string_view>& missing = {});

// The configuration file that the user names, by --config or DDPRUN_CONFIG; empty: none. Mistakes
// on the command line count for nothing here: parse_options() reports them.
std::string config_named(const std::vector<std::string>& words, const Environment& environment);

// As the JSON of a dry run has it.
const char* to_string(OptionSource source);

}  // namespace ddprun::launcher
