// The times of a call, and the sentence at its end.
#include "rendezvous/link/call_patience.h"

#include <algorithm>
#include <utility>

namespace ddprun::rendezvous {
namespace {

// Between two rounds through all candidates.
constexpr Duration kLongestPause = std::chrono::milliseconds{50};
// How long refusals are passed over while there are other candidates.
constexpr Duration kRefusedPatience = std::chrono::seconds{30};

}  // namespace

Duration CallPatience::left(Time now, Duration limit) const {
    return deadline_ == kNever ? limit : std::clamp(deadline_ - now, Duration{0}, limit);
}

std::optional<Duration> CallPatience::next_pause(Time now) {
    if (once_ || !goes_on(now)) return std::nullopt;
    return left(now, std::exchange(pause_, std::min(2 * pause_, kLongestPause)));
}

bool CallPatience::passes_over_refusal(Time now) {
    if (candidates_ < 2) return false;
    if (!refused_since_) refused_since_ = now;
    return now - *refused_since_ < kRefusedPatience;
}

void CallPatience::note_silence(Time now, std::string sentence) {
    if (goes_on(now) || last_try_.empty()) note(std::move(sentence));
}

std::optional<std::string> CallPatience::word(Time now) {
    if (once_) return std::nullopt;
    if (speaks_at_ == kNever) speaks_at_ = now + silence_;
    if (now < speaks_at_) return std::nullopt;
    silence_ *= 2;
    speaks_at_ = now + silence_;
    return "still calling the rendezvous; last: " +
           (last_try_.empty() ? "no candidate to call" : last_try_) +
           (deadline_ == kNever ? "" : "; giving up in " + to_text(deadline_ - now));
}

Error CallPatience::verdict(Time now) const {
    if (once_ && goes_on(now)) return Error(ErrorCode::unavailable, last_try_);
    const std::string first = first_.empty() ? "" : "the first is " + first_ + ", ";
    const std::string count =
        candidates_ == 1 ? "" : std::to_string(candidates_) + " candidates, " + first;
    return Error(ErrorCode::timed_out,
                 "could not reach the rendezvous in time (" + count +
                     "last: " + (last_try_.empty() ? "no candidate to call" : last_try_) + ")");
}

}  // namespace ddprun::rendezvous
