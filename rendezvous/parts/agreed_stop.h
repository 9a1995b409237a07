// The planned stop that is under way, if any: somebody asked for the end of the job (a signal, the
// time limit), or the generation makes room for one of other nodes (PROTOCOL.md, rules 20 and 23).
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <optional>
#include <string>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class AgreedStop {
  public:
    // ---- the job is to end
    void begin(const StopAsked& asked, Time now);
    bool is_asked() const { return asked_.has_value(); }
    // "SIGTERM on node gpu01". Only while a stop is asked.
    const std::string& reason() const { return asked_->reason; }
    // When a stop for this cause was asked for; nothing: it was not.
    std::optional<Time> asked_at(StopCause cause) const {
        return asked_ && asked_->cause == cause ? std::optional(since_) : std::nullopt;
    }
    // The requeue is in progress. Slurm itself then signals all workers, and that signal must not
    // withdraw the requeue.
    void requeues() { requeueing_ = true; }
    bool is_requeueing() const { return requeueing_; }

    // ---- the generation is to make room for another one, and says why
    void regroup(StopCause cause, const std::string& sentence) { regroup_ = {cause, sentence}; }
    void regrouped() { regroup_.reset(); }
    // Why; none: it is not to.
    std::optional<std::string> regrouping() const {
        return regroup_ ? std::optional(regroup_->sentence) : std::nullopt;
    }

    bool is_under_way() const { return is_asked() || regroup_.has_value(); }
    // The Stop that a member gets; empty: no stop is under way. `ending`: the decided end of the
    // job, if it ends.
    std::optional<Stop> told(Time now, Generation generation,
                             const std::optional<Ending>& ending) const;

  private:
    std::optional<StopAsked> asked_;
    Time since_{};
    bool requeueing_ = false;
    struct Regroup {
        StopCause cause;
        std::string sentence;
    };
    std::optional<Regroup> regroup_;
};

}  // namespace ddprun::rendezvous
