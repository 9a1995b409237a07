// What a start would do, as a value: the plan and what follows from it. A dry run calls the same
// functions as a real start (assign_ranks, offer_of, worker_plan, place_of, worker_environment), so
// the two cannot disagree.
//
// Much becomes known only when the nodes meet. Known<T> says what is known, and when or where the
// rest is found. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/dry_run/known.h"
#include "launcher/options/options.h"
#include "launcher/plan/job_input.h"
#include "launcher/plan/step_to_come.h"

namespace ddprun::launcher {

// What HostFacts::random_id is in a dry run: the random part of names that only a real start makes.
inline constexpr const char* kNotMadeYet = "XXXXXXXXXXXXXXXX";

struct DryRun {
    // Where the nodes of this job meet.
    enum class Start {
        one_node,  // one node alone, without a rendezvous
        endpoint,  // at the endpoint that the options name
        step,      // in the Slurm step that this process is part of
        // In a Slurm step that srun has yet to start; this host is not one of its nodes.
        step_to_come,  // in a Slurm step that srun has yet to start; not on this host
    };
    struct Node {
        std::string name;   // empty: not known
        bool here = false;  // it is this node
        Known<int> workers;
        Known<int> first_rank;
    };
    struct Worker {
        int local_rank = 0;
        Known<int> rank;
        std::vector<std::string> devices;  // GPUs that it sees
        std::vector<int> cpus;             // CPUs that it is bound to; empty: all of ddprun's
        std::vector<std::string> argv;
        std::vector<std::string> files;  // of its output
    };
    struct Variable {
        std::string name;
        Known<std::string> value;
        bool operator==(const Variable&) const = default;
    };

    Start start = Start::one_node;
    Plan plan;
    Known<std::string> run_id;
    std::vector<Node> nodes;      // in the order of ranks
    std::string order;            // what that order follows: "--node-rank"
    Known<int> workers_per_node;  // of this node
    Known<int> world_size;
    Known<std::string> leader;  // the node that leads at first
    Known<std::vector<int>>
        ports;  // tried for the rendezvous in this order; empty list: none is opened
    Known<std::string> ledger;          // in the form that --ledger takes
    int restarts = 0;                   // the restart budget as a number
    std::vector<Worker> workers;        // of this node; empty for a step to come
    std::vector<Variable> variables;    // set for the first worker of this node
    std::vector<std::string> files;     // of the generation, besides those of the workers
    std::vector<OptionOrigin> options;  // that were given, and where
    std::vector<std::string> warnings, notes;
};

// `step` is null unless the plan is that of a step to come.
DryRun make_dry_run(const JobInput& input, const StepToCome* step,
                    const std::vector<OptionOrigin>& options);

const char* to_string(DryRun::Start start);

}  // namespace ddprun::launcher
