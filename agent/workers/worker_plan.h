// What the workers of a node are, the same in every generation, and what place each of them has in
// one of these. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/output/output_plan.h"
#include "agent/workers/worker_env.h"
#include "rendezvous/model/node_place.h"

namespace ddprun::agent {

struct WorkerPlan {
    rendezvous::NodeId node;
    std::string run_id;
    std::string role = "default";
    std::vector<std::string> argv;
    std::size_t first_argument = 1;  // of the program, in argv: from here on ${local_rank} is known
    bool collapse_dollars = false;   // as torchrun does
    std::vector<std::vector<int>> cpus;  // by local rank; empty: those of ddprun
    std::vector<Environment> more;  // by local rank, beyond what every worker gets; may be empty
    std::string signal_names;       // TORCHELASTIC_SIGNALS_TO_HANDLE
    Environment environment;        // ddprun's own, to which each worker's place is added
    std::optional<int> omp_num_threads;
    std::optional<std::uint64_t> nofile_soft;
    bool foreground = false;  // a lone worker at a terminal
    std::string slurm_job_id;
    slurm::WorkerVariables slurm_env = slurm::WorkerVariables::rewrite;
    OutputPlan output;
};

inline constexpr int kProgressFd = 3;  // the number that DDPRUN_PROGRESS_FD names

// Names the FIFO for torchrun's file timers; the user may have set it.
inline constexpr const char* kTimerVariable = "TORCHELASTIC_TIMER_FILE";

// Of a worker of the node that has this place, by its index there. The error file is the caller's to
// add.
WorkerPlace place_of(const WorkerPlan& plan, const rendezvous::NodePlace& node, int index);

}  // namespace ddprun::agent
