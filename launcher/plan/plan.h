// Combines the user's options, Slurm's variables and the facts of this host into one plain plan:
// which node leads at the start, where the nodes meet, how many take part, and what each worker
// runs.
//
// The user's options have priority over Slurm, except for what Slurm knows better: the node's rank
// and the order of nodes. Everything that was concluded rather than given stands in `notes`, for
// the log. All checks of a layout happen here, before any socket is opened. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/host/gpu_share.h"
#include "agent/parts/stop_policy.h"
#include "base/error.h"
#include "launcher/options/options.h"
#include "slurm/allocation.h"
#include "slurm/worker_variables.h"

namespace ddprun::launcher {

// The default interpreter.
inline constexpr const char* kPython = "python3";

// Facts about this host that the caller collected.
struct HostFacts {
    std::string hostname;
    int cpus = 1;                      // in the affinity mask
    std::vector<agent::Cpu> cpu_list;  // the same, with what they share; for --numa-binding only
    std::optional<double> cpu_quota;   // of our control groups
    std::vector<agent::Gpu> gpus;      // that the host shows; what is visible is decided here
    std::optional<std::string> cuda_visible_devices;  // as set; empty text means none
    std::optional<std::string> hip_visible_devices;
    std::vector<std::pair<std::string, std::string>>
        interfaces;  // each address with its interface in front; for --interface only
    std::vector<std::string> local_addresses;  // as text; for the caller's own address match
    // Addresses of the batch script's host, if the step does not run on it. No node of the step has
    // them.
    std::vector<std::string> addresses_outside_step;
    std::string working_directory;
    std::string temporary_directory = "/tmp";  // for files that stay
    std::string fleeting_directory = "/tmp";   // for those that go with the job
    std::string random_id;                     // for a run that nobody named
    bool called_as_torchrun = false;           // argv[0]: other defaults, see make_plan
    std::optional<std::string> python_exec;    // PYTHON_EXEC or VIRTUAL_ENV's; without, python3
    std::string python_in_path;                // where that one lies, for the log
    bool omp_num_threads_set = false;
};

// Whether this node leads at the start.
enum class Lead {
    yes,                 // start the service active; a port of the endpoint must be bound
    no,                  // be a client of the endpoint
    if_address_matches,  // yes if the endpoint's host resolves to an address of ours and a port can
                         // be bound, else no
};

struct Endpoint {
    std::string host;
    std::vector<int> ports;  // to be tried in this order; 0 (standalone only): any free one
    // Its address, as far as known, for where nobody knows the name: a container may have no names
    // of other nodes.
    std::string if_unknown = {};
    bool operator==(const Endpoint&) const = default;
};

struct Ledger {
    rendezvous::LedgerPlace place;  // of this job's entries
    bool chosen = false;            // the user named it; else it is a default
};

// How nodes prove that they belong to the same user.
struct Identity {
    rendezvous::IdentityMode mode = rendezvous::IdentityMode::automatic;
    std::string secret_file;  // empty: not given
};

struct Times {
    std::chrono::milliseconds lease{10'000};
    std::chrono::milliseconds join_timeout{600'000};
    std::chrono::milliseconds last_call{30'000};
    std::chrono::milliseconds grace_final{30'000};   // last stop: 25 s under Slurm (KillWait is 30)
    std::chrono::milliseconds grace_restart{5'000};  // stop after a failure
    std::chrono::milliseconds unkillable{60'000};    // that SIGKILL may go without effect
};

struct WorkerCommand {
    std::vector<std::string> argv;   // argv[0] is looked up in PATH when it has no slash
    bool python = false;             // argv[0] is an interpreter, the program stands behind it
    std::string display;             // script, module or program, for logs and reports
    std::size_t first_argument = 1;  // in argv, of the program: ${local_rank} is replaced from here
    bool collapse_dollars = false;   // and $$ becomes $, as with torchrun
};

struct Output {
    std::string log_dir;                   // empty: there are no files
    std::vector<agent::RankOutput> ranks;  // by local rank
    agent::Label label = agent::Label::all;
    std::string prefix_template;  // empty: torchrun's
    std::vector<std::string> stdout_filters, stderr_filters;
    agent::Overflow overflow = agent::Overflow::block;
    int verbosity = 0;
};

struct Plan {
    std::string run_id;
    std::string node_name;
    std::vector<std::string> expected_nodes;  // in the order of ranks; empty: not known
    std::optional<int> node_rank;             // index in that order, or what --node-rank says
    // One of several tasks on a host, each of which is a node (--task-per-worker).
    struct Task {
        int local_id = 0;
        int tasks_here = 1;
        bool order_known = false;    // else expected_nodes stand in that of hosts
        bool beside_leader = false;  // on the host where the nodes meet
        bool own_gpus = false;       // Slurm shows each task its own alone
    };
    std::optional<Task> task;
    int min_nodes = 1, max_nodes = 1;
    int slots = 1;
    std::string slots_reason;    // "--nproc-per-node=4", "one for each GPU of SLURM_GPUS_ON_NODE=4"
    bool slots_counted = false;  // by what this host has: other nodes may have other numbers
    bool standalone = false;     // one node, nobody else can come
    Endpoint endpoint;
    Lead lead = Lead::yes;
    std::vector<int>
        service_ports;  // to be tried by a node that does not lead, before any free one
    std::optional<std::string> local_addr;
    std::string unusable;  // why no worker can run on this node; the others are waiting to hear it
    bool check = false;    // the worker is check_node.h's, and its report is all there is to say
    int slurm_restart_count = 0;  // in the link's identity: who is from before a requeue is refused
    Ledger ledger;
    Identity identity;
    RestartLimit max_restarts;
    int crash_loop = 3;                         // 0: off
    std::chrono::milliseconds hang_timeout{0};  // 0: off
    bool blame = true;
    rendezvous::OnJoin on_join = rendezvous::OnJoin::restart;
    std::chrono::milliseconds join_interval{600'000};
    Times times;
    WorkerCommand command;
    Output output;
    std::string on_failure;                   // a program, looked up in PATH; empty: none
    std::vector<store::Network> store_allow;  // who may use the workers' store besides the nodes
    store::Limits store_limits;
    std::string role = "default";
    std::vector<int> signals;             // that stop the job
    std::vector<int> passed_on;           // that go to this node's workers and stop nothing
    agent::StopOptions stop;              // but for the end of the job's time on our own clock
    std::optional<std::int64_t> job_end;  // since 1970; none: no variable tells it
    // For a step of several nodes: whether ddprun ends what the batch script leaves, the address of
    // srun, and the id of this step (headless.h).
    bool end_headless = false;
    std::string srun_address;
    std::string slurm_step_id;
    std::string signal_names;                   // as torchrun's workers are told
    std::vector<std::vector<int>> worker_cpus;  // by local rank; empty: all that ddprun may use
    std::vector<std::map<std::string, std::string>> worker_variables;  // by local rank, or empty
    std::optional<int> omp_num_threads;  // set for the workers; empty: leave the environment's
    slurm::WorkerVariables slurm_env = slurm::WorkerVariables::rewrite;
    // Sentences for the log. Notes and warnings are about the job and equal on every node. The
    // leader logs them, or each node if the plan does not say which node leads. host_warnings are
    // about this host only, and each node logs its own.
    std::vector<std::string> notes, warnings, host_warnings;
};

// Possible errors: usage, with the sentence that says which option to change.
Result<Plan> make_plan(const Options& options, const std::optional<slurm::Allocation>& allocation,
                       const HostFacts& host);

// Whether this node logs for its host.
inline bool first_on_host(const Plan& plan) { return !plan.task || plan.task->local_id == 0; }

const char* to_string(Lead lead);

}  // namespace ddprun::launcher
