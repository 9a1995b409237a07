// Why all workers are being stopped as planned, if they are: somebody asked for it (a signal, the
// end of the job's time), or the generation makes room for a larger world.
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
    // Slurm is being asked to put the job back into its queue, and signals all workers for it.
    void requeues() { requeueing_ = true; }
    bool is_requeueing() const { return requeueing_; }

    // ---- the generation is to make room for a larger world, and says why
    void regroup(const std::string& sentence) { larger_world_ = sentence; }
    void regrouped() { larger_world_.reset(); }
    const std::optional<std::string>& regrouping() const { return larger_world_; }

    bool is_under_way() const { return is_asked() || larger_world_; }
    // What a member is told; nothing: no stop is under way. `ending`: of the job, where it ends.
    std::optional<Stop> told(Time now, Generation generation,
                             const std::optional<Ending>& ending) const;
    // The end that a stop leads to.
    static Ending ending_of(const StopAsked& asked, const std::string& sentence);

  private:
    std::optional<StopAsked> asked_;
    Time since_{};
    bool requeueing_ = false;
    std::optional<std::string> larger_world_;
};

}  // namespace ddprun::rendezvous
