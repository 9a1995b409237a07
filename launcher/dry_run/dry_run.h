// What a start would do, as a value: the plan, and what follows from it by the same functions that
// the start itself calls (assign_ranks, offer_of, worker_plan, place_of, worker_environment).
//
// Much is found only when the nodes meet. What is not known has no value, and a note says when or
// where it will be found; a value with a note holds if what the note says does. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/job_input.h"
#include "launcher/plan/step_to_come.h"

namespace ddprun::launcher {

// As the random part of names that are made at the start is shown, in HostFacts::random_id.
inline constexpr const char* kNotMadeYet = "XXXXXXXXXXXXXXXX";

template <class T>
struct Known {
    std::optional<T> value;
    std::string note;  // empty: it is so
    bool operator==(const Known&) const = default;
};

struct DryRun {
    enum class Start {
        one_node,      // without a rendezvous
        endpoint,      // the nodes meet where the options say
        step,          // of Slurm
        step_to_come,  // of Slurm, not started yet: this host is not one of its nodes
    };
    struct Node {
        std::string name;   // empty: not known
        bool here = false;  // this node
        Known<int> workers;
        Known<int> first_rank;
    };
    struct Worker {
        int local_rank = 0;
        Known<int> rank;
        std::vector<std::string> devices;  // GPUs that it sees
        std::vector<int> cpus;             // that it is bound to; empty: all of ddprun's
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
    std::string order;            // what gives that order
    Known<int> workers_per_node;  // of this node
    Known<int> world_size;
    Known<std::string> leader;  // the node that leads at first
    Known<std::vector<int>>
        ports;                    // to try for the rendezvous, in this order; none: none is opened
    Known<std::string> ledger;    // as --ledger takes it
    int restarts = 0;             // the budget in numbers
    std::vector<Worker> workers;  // of this node; of a step to come none
    std::vector<Variable> variables;  // that ddprun sets for the first worker of this node
    std::vector<std::string> files;   // of the generation, beside those of the workers
    std::vector<std::string> warnings, notes;
};

// `step`: null, unless the plan is that of a step to come.
DryRun make_dry_run(const JobInput& input, const StepToCome* step);

const char* to_string(DryRun::Start start);

}  // namespace ddprun::launcher
