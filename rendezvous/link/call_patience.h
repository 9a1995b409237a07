// How long a call to a rendezvous goes on, what it passes over, and what it says when it gives up.
//
// A call goes through its candidates in rounds, until one answers or the deadline passes. The pause
// between two rounds is 1 ms and doubles up to 50 ms: the peer may not be up yet. A call that goes
// round only once has no pause. A refusal may come from the rendezvous of another job on one of our
// candidate ports; while there are other candidates, refusals are passed over for 30 s.
//
// Pure. Times are those of boot_now(). Owned by ClientCall.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/time.h"

namespace ddprun::rendezvous {

class CallPatience {
  public:
    // `deadline` may be kNever.
    // `first`: the candidate that is called first, for the sentence.
    CallPatience(std::size_t candidates, Time deadline, bool once, std::string first = {})
        : candidates_(candidates), deadline_(deadline), once_(once), first_(std::move(first)) {}

    bool goes_on(Time now) const { return now < deadline_; }
    // The time until the deadline, at most `limit`: for each single wait of the call.
    Duration left(Time now, Duration limit) const;

    // A round has brought no answer: the pause before the next one. Nothing: the call gives up.
    std::optional<Duration> next_pause(Time now);

    // A candidate refuses us: whether to go on to the others. The first refusal starts the 30 s.
    bool passes_over_refusal(Time now);

    // What the last attempt met, for the sentence at the end.
    void note(std::string sentence) { last_try_ = std::move(sentence); }
    // The same for a candidate that was waited for in vain. If the deadline has cut this attempt
    // short, it tells less than the one before it, whose sentence then stays.
    void note_silence(Time now, std::string sentence);

    // Asked after each round: what the log says of a call that has had no answer for half a minute,
    // and then ever more rarely.
    std::optional<std::string> word(Time now);

    // Why the call has failed. unavailable: its only round failed before the deadline. timed_out:
    // the deadline has passed.
    Error verdict(Time now) const;

  private:
    const std::size_t candidates_;
    const Time deadline_;
    const bool once_;
    const std::string first_;
    Duration pause_ = std::chrono::milliseconds{1};  // the next one
    std::optional<Time> refused_since_;
    Time speaks_at_ = kNever;
    Duration silence_ = std::chrono::seconds{30};  // until the next word
    std::string last_try_;
};

}  // namespace ddprun::rendezvous
