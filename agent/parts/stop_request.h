// The stop that this node asks its leader for, because of a signal or because the time limit of the
// job is near.
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
    // The first request counts. The exception is a plain signal that cancels the requeue of an
    // earlier request.
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

    // For a stop by a signal: without an answer by this time, the node stops alone.
    void await_answer(Time by) { answer_by_ = by; }
    void answered() { answer_by_ = kNever; }
    Time answer_by() const { return answer_by_; }

    // How long the newest snapshot of a worker on this node took. The last snapshot needs about as
    // long.
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
