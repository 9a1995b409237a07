// How the job ends, once that is decided, and how long the leader waits for absent nodes to tell
// them (PROTOCOL.md, rule 24).
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "rendezvous/model/durations.h"
#include "rendezvous/rules/generation_facts.h"

namespace ddprun::rendezvous {

class JobEnd {
  public:
    // ---- what it will be; it may still change until it is recorded
    const std::optional<Ending>& ending() const { return ending_; }
    bool is_decided() const { return ending_.has_value(); }
    void decide(Ending ending) { ending_ = std::move(ending); }
    void reopen() { ending_.reset(); }
    bool requeues() const { return ending_ && ending_->requeue; }
    void withdraw_requeue() { ending_->requeue = false; }
    // Adds the time of the end, and the loss of a node if that is the reason. `to_day`: added to a
    // Time, it gives the time since 1970.
    void complete(Time now, Duration to_day, const GenerationFacts& facts);

    // ---- telling it
    void closes(Time now, Duration lease) { hear_by_ = now + share(lease, kHearTheEnd); }
    // Until when a node that was heard at `heard` may connect again.
    Time waits_until(Time heard, Duration lease) const {
        return std::min(hear_by_, heard + share(lease, kHearTheEnd));
    }
    bool is_told() const { return told_; }
    void told() { told_ = true; }

  private:
    std::optional<Ending> ending_;
    Time hear_by_ = kNever;
    bool told_ = false;
};

}  // namespace ddprun::rendezvous
