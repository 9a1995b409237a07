// Failure, budget and progress → restart, or give up, with the sentence (design 4.2). Pure.
#pragma once

#include <string>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// What the policy remembers over the generations of a job.
struct RestartHistory {
    int restarts = 0;         // of the budget that are used up
    bool progressed = false;  // the job has ever made progress
    int in_a_row =
        0;  // generations that died before progress with `last_cause`, one after the other
    std::string last_cause;
};

struct RestartDecision {
    bool restart = false;
    std::string sentence;
};

// What makes two failures the same: rank, exit code or signal, last line of the error; or that it
// hangs.
std::string cause_key(const WorkerOutcome& failure);

// The budget in numbers: what workers are told as TORCHELASTIC_MAX_RESTARTS.
int restart_budget(int max_restarts);

// A generation has ended by a worker's failure. Updates the history: a restart uses up one of the
// budget.
RestartDecision decide_restart(RestartHistory& history, const WorkerOutcome& failure,
                               bool generation_progressed, const Limits& limits);

}  // namespace ddprun::rendezvous
