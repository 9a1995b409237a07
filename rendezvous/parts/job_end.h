// How the job ends, once that is decided, and until when absent nodes may come and hear it.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "rendezvous/model/durations.h"
#include "rendezvous/rules/generation_facts.h"

namespace ddprun::rendezvous {

// The end of a job whose nodes cannot meet, or cannot go on.
inline Ending unavailable(std::string sentence) {
    return {.verdict = Verdict::unavailable,
            .code = 69,
            .sentence = std::move(sentence),
            .first_failure = {},
            .first_failure_node = {},
            .consequences = 0};
}

class JobEnd {
  public:
    // ---- what it will be; it may still change until it is recorded
    const std::optional<Ending>& ending() const { return ending_; }
    bool is_decided() const { return ending_.has_value(); }
    void decide(Ending ending) { ending_ = std::move(ending); }
    void reopen() { ending_.reset(); }
    bool requeues() const { return ending_ && ending_->requeue; }
    void withdraw_requeue() { ending_->requeue = false; }
    // Adds when it was, and the loss of a node that is the reason. `to_day`: from a Time to the
    // time of day since 1970.
    void complete(Time now, Duration to_day, const GenerationFacts& facts);

    // ---- telling it
    void closes(Time now, Duration lease) { hear_by_ = now + share(lease, kHearTheEnd); }
    // Until when a node that was heard at `heard` may come again.
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
