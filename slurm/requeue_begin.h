// When Slurm may start a requeued job again, and whether ddprun may move that. Pure.
//
// Slurm holds a requeued job for two minutes. `scontrol update starttime=now+N`, called after the
// requeue and before the job has left its nodes, replaces that time. If the job leaves later than
// in N seconds, Slurm takes its own delay again. So two lives never overlap.
//
// The delay is also the brake of a job that fails and is requeued again and again. So it stays
// unless the life that ends was long and its workers made progress.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "slurm/job_id.h"

namespace ddprun::slurm {

// How long Slurm holds a requeued job, from the output of `scontrol show config`.
std::chrono::seconds requeue_delay(std::string_view config);

// One allocation of the job, at its end.
struct Life {
    std::chrono::seconds lasted{};
    bool progressed = false;  // its last generation made progress (rendezvous/model/reach.h)
};

// Why the site's delay counts after this life; empty: it need not.
std::string brakes(const Life& life, std::chrono::seconds delay);
// What else keeps the requeued job in the queue, by the user's wish; empty: nothing. `now`: seconds
// since 1970.
std::string is_kept(const ShownJob& requeued, std::chrono::seconds now);

}  // namespace ddprun::slurm
