// Decides after a failure whether the job restarts or gives up, from the budget and how far it
// got, with the sentence for the log (PROTOCOL.md, rule 17). Pure.
#pragma once

#include <string>

#include "rendezvous/model/model.h"
#include "rendezvous/model/reach.h"

namespace ddprun::rendezvous {

// What the policy remembers over the generations of a job.
struct RestartHistory {
    int restarts = 0;  // of the budget that are used up
    bool met = false;  // the workers of some generation have met
    int in_a_row =
        0;  // generations that died before progress with `last_cause`, one after the other
    std::string last_cause;
};

struct RestartDecision {
    bool restart = false;
    std::string sentence;
};

// The key by which two failures count as the same: exit code or signal, and the exception (the last
// line of the error file, else what Python printed). All ranks may raise the same one, and which is
// first is chance, so the rank belongs to the key only where no exception is known.
std::string cause_key(const WorkerOutcome& failure);

// The budget as a number. Workers see it as TORCHELASTIC_MAX_RESTARTS.
int restart_budget(int max_restarts);

// Decides after a generation that got so far was ended by a worker's failure. Updates `history`: a
// restart uses up one of the budget.
RestartDecision decide_restart(RestartHistory& history, const WorkerOutcome& failure, Reach reach,
                               const Limits& limits);

// Whether no worker of the next generation may be forked from a server (warm): two generations in a
// row have failed with the same cause, or so many that the job would have ended if the last failure
// had not been that of a forked worker. Only what fails cold ends a job as a crash loop.
bool starts_cold(const RestartHistory& history, const Limits& limits);

}  // namespace ddprun::rendezvous
