// What the workers of this node have in common in every generation (WorkerPlan), and the place of
// each worker in one generation (place_of). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/output/output_plan.h"
#include "agent/workers/worker_env.h"
#include "rendezvous/model/node_place.h"

namespace ddprun::agent {

// Fixed at the start of ddprun. Lists "by local rank" have one entry for each worker of this
// ddprun.
struct WorkerPlan {
    rendezvous::NodeId node;
    std::string run_id;  // TORCHELASTIC_RUN_ID; in a plan empty unless it is not the job's
    // Names this run and no other, also after a requeue (run_key.h). Empty in a plan: the leader's
    // number of the job tells it apart.
    std::string run;
    std::string role = "default";
    std::vector<std::string> argv;
    // Index in argv of the program's first argument; ${local_rank} is replaced from here on.
    std::size_t first_argument = 1;
    bool collapse_dollars = false;       // "$$" becomes "$", as with torchrun
    std::vector<std::vector<int>> cpus;  // by local rank; empty: the same as ddprun
    // By local rank: variables beyond what every worker gets. May be empty.
    std::vector<Environment> more;
    std::string signal_names;  // TORCHELASTIC_SIGNALS_TO_HANDLE
    Environment environment;   // ddprun's own environment
    std::optional<int> omp_num_threads;
    bool fault_handler = false;  // Python's, for fatal signals (worker_env.h)
    bool pmi = false;            // the workers are programs of MPI (agent/pmi)
    // Trainers of Python frameworks obey a stop (warm/bootstrap/_ddprun_frameworks.py).
    bool framework_stop = false;
    // Not empty: a torn checkpoint is set aside, and the record of saves is in this folder
    // (packaging/python/ddprun/_torn.py).
    std::string set_aside_torn;
    std::optional<std::uint64_t> nofile_soft;
    bool foreground = false;  // stdin is a terminal, and workers may read it
    bool by_turns = false;    // there are several
    std::string slurm_job_id;
    slurm::WorkerVariables slurm_env = slurm::WorkerVariables::rewrite;
    OutputPlan output;
};

// The descriptor number of the progress pipe in a worker; DDPRUN_PROGRESS_FD has this value.
inline constexpr int kProgressFd = 3;
// That of the socket for PMI; PMI_FD has this value.
inline constexpr int kPmiFd = 4;
// That of the socket for events; DDPRUN_EVENTS_FD has this value.
inline constexpr int kEventsFd = 5;

// Names the FIFO for torchrun's file timers. The user may set it.
inline constexpr const char* kTimerVariable = "TORCHELASTIC_TIMER_FILE";

// The place of a worker, by its index on this node. The caller adds the error file and the stop
// file.
WorkerPlace place_of(const WorkerPlan& plan, const rendezvous::NodePlace& node, int index);

// Whether Python in the workers writes its functions when it gets a fatal signal. If the user has
// set the variable, an empty value turns that off.
bool has_fault_handler(const WorkerPlan& plan);

// The environment of a worker before its node has a place, and the variables in it that change with
// the place.
struct EnvironmentToCome {
    std::vector<std::string> example;
    std::set<std::string> placed;
};
EnvironmentToCome environment_to_come(const WorkerPlan& plan);

}  // namespace ddprun::agent
