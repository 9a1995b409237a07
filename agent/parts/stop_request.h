// The stop that this node asks its leader for: by a signal that came here, or because the end of the
// job's time is near.
//
// Pure; owned by the agent machine.
#pragma once

#include <optional>
#include <utility>

#include "rendezvous/model/messages.h"

namespace ddprun::agent {

class StopRequest {
  public:
    const std::optional<rendezvous::StopAsked>& asked() const { return asked_; }
    // The first request counts, but for one that cancels what was to go on from Slurm's queue.
    bool would_take(const rendezvous::StopAsked& stop) const {
        const bool cancels = asked_ && asked_->requeue && !stop.requeue &&
                             stop.cause == rendezvous::StopCause::signal;
        return !asked_ || cancels;
    }
    void take(rendezvous::StopAsked stop) { asked_ = std::move(stop); }
    // The request as it is told now: `left` of the job's time.
    const rendezvous::StopAsked& with_time_left(std::optional<Duration> left) {
        if (left) asked_->left = left;
        return *asked_;
    }

    // Of a stop by a signal: without an answer by then the node stops alone.
    void await_answer(Time by) { answer_by_ = by; }
    void answered() { answer_by_ = kNever; }
    Time answer_by() const { return answer_by_; }

    // How long the newest snapshot took that a worker here has told: the last one needs as long.
    void snapshot_took(Duration time) { snapshot_took_ = time; }
    Duration snapshot_took() const { return snapshot_took_; }

    // When Slurm is asked for the end of the job's time; kNever: a variable tells it.
    Time asks_job_end_at() const { return ask_job_end_at_; }
    void ask_job_end_at(Time when) { ask_job_end_at_ = when; }

  private:
    std::optional<rendezvous::StopAsked> asked_;
    Time answer_by_ = kNever;
    Duration snapshot_took_{};
    Time ask_job_end_at_ = kNever;
};

}  // namespace ddprun::agent
