// One node's plan of a job, as a plain value: which node leads at the start, where the nodes meet,
// how many take part, and what each worker runs. make_plan.h makes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/output/output_plan.h"
#include "agent/parts/recorder_options.h"
#include "agent/parts/stop_policy.h"
#include "agent/parts/warm_mode.h"
#include "agent/workers/worker_plan.h"
#include "rendezvous/ledger_format/ledger_place.h"
#include "rendezvous/model/identity_mode.h"
#include "rendezvous/model/model.h"
#include "store/door/network.h"
#include "store/protocol/limits.h"

namespace ddprun::launcher {

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
    rendezvous::EtcdFiles etcd;
};

// How nodes prove that they belong to the same user.
struct Identity {
    rendezvous::IdentityMode mode = rendezvous::IdentityMode::automatic;
    std::string secret_file;  // empty: not given
};

// What the workers' command line is, for checks and reports; WorkerPlan has the words.
struct Program {
    bool python = false;  // argv[0] is an interpreter, and the program stands behind it
    std::string display;  // script, module or program
};

struct Plan {
    std::string run_id;
    std::string node_name;
    std::string endpoint_doubt;    // what to say if nobody answers there for some seconds; or empty
    std::optional<int> node_rank;  // index in limits.order, or what --node-rank says
    // What the rendezvous needs. limits.order are the nodes that are expected; empty: not known.
    rendezvous::Limits limits;
    // What the workers of this node are. worker_plan() (agent_config.h) adds the facts that are not
    // planned: the node's incarnation, the environment.
    agent::WorkerPlan workers;
    Program program;
    agent::warm::Mode warm = agent::warm::Mode::off;
    agent::RecorderOptions recorders;
    // One of several tasks on a host, each of which is a node (--task-per-worker).
    struct Task {
        int local_id = 0;
        int tasks_here = 1;
        bool order_known = false;    // else limits.order is that of the hosts
        bool beside_leader = false;  // on the host where the nodes meet
        bool own_gpus = false;       // Slurm shows each task its own alone
    };
    std::optional<Task> task;
    int slots = 1;
    std::string slots_reason;    // "--nproc-per-node=4", "one for each GPU of SLURM_GPUS_ON_NODE=4"
    bool slots_counted = false;  // by what this host has: other nodes may have other numbers
    bool standalone = false;     // one node, nobody else can come
    Endpoint endpoint;
    Lead lead = Lead::yes;
    // To be tried by a node that does not lead, before any free one.
    std::vector<int> service_ports;
    std::optional<std::string> local_addr;
    std::string unusable;  // why no worker can run on this node; the others are waiting to hear it
    bool check = false;    // the worker is check_node.h's, and its report is all there is to say
    int slurm_restart_count = 0;  // in the link's identity: who is from before a requeue is refused
    Ledger ledger;
    Identity identity;
    agent::Grace grace;
    agent::StopOptions stop;              // but for the end of the job's time on our own clock
    std::optional<std::int64_t> job_end;  // since 1970; none: no variable tells it
    // How soon a requeued job may start again; none: after Slurm's own delay.
    std::optional<std::chrono::seconds> requeue_begin;
    std::vector<int> signals;          // that stop the job
    std::vector<int> passed_on;        // that go to this node's workers and stop nothing
    std::string on_failure, on_event;  // programs, looked up in PATH; empty: none
    std::string log_dir;               // empty: there are no files of the workers' output
    agent::Overflow console_overflow = agent::Overflow::block;
    bool pty = true;  // workers print to a terminal where ddprun does
    int verbosity = 0;
    bool log_times = false, log_json = false;  // of ddprun's own lines
    Duration status_every{};  // of silence, then a line on how the job stands; 0: never
    std::vector<store::Network> store_allow;  // who may use the workers' store besides the nodes
    store::Limits store_limits;
    // For a step of several nodes: whether ddprun ends what the batch script leaves, the address of
    // srun, and the id of this step (headless.h).
    bool end_headless = false;
    std::string srun_address;
    std::string slurm_step_id;
    // Sentences for the log. Notes and warnings are about the job and equal on every node. The
    // leader logs them, or each node if the plan does not say which node leads. host_warnings are
    // about this host only, and each node logs its own.
    std::vector<std::string> notes, warnings, host_warnings;
};

// Whether this node logs for its host.
inline bool first_on_host(const Plan& plan) { return !plan.task || plan.task->local_id == 0; }

// Whether this is a job of one node, which meets nobody. `is_host=0` makes Lead::no: then even one
// node meets at a rendezvous outside.
inline bool meets_nobody(const Plan& plan) {
    return plan.limits.max_nodes == 1 && plan.lead != Lead::no;
}

inline const char* to_string(Lead lead) {
    constexpr const char* kNames[] = {"yes", "no", "if_address_matches"};
    return kNames[static_cast<std::size_t>(lead)];
}

}  // namespace ddprun::launcher
