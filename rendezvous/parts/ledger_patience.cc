// Limits for every question to the ledger (ledger_patience.h).
#include "rendezvous/parts/ledger_patience.h"

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {

void LedgerPatience::was_read(Time now) {
    asked_ = unanswered_since_ = kNever;
    read_at_ = now;
    // While creates fail, the sentence stays: a read that works must not make the log repeat it.
    if (failing_since_ == kNever) failing_.clear();
}

bool LedgerPatience::was_not_read(const std::string& why) {
    const bool news = failing_ != why;
    failing_ = why;
    return news;
}

bool LedgerPatience::was_not_created(Time now, const std::string& why, Duration lease) {
    const bool news = failing_since_ == kNever || failing_ != why;
    failing_ = why;
    failing_since_ = std::min(failing_since_, now);
    create_again_at_ = now + share(lease, kCreateAgain);
    return news;
}

bool LedgerPatience::reads_again(Time now, Duration lease) {
    if (now < reads_again_at(lease)) return false;
    read_at_ = now;
    return true;
}

Time LedgerPatience::reads_again_at(Duration lease) const {
    return read_at_ + share(lease, kReadAgain);
}

bool LedgerPatience::end_is_unrecorded(Time now, Duration lease) const {
    return failing_since_ != kNever && now - failing_since_ > share(lease, kEndUnrecorded);
}

LedgerPatience LedgerPatience::after_yield() const {
    LedgerPatience next;
    next.unanswered_since_ = unanswered_since_;
    next.yielded_at_ = yielded_at_;
    return next;
}

// After a longer pause the silence of the ledger is a new one, so its time starts again.
LedgerPatience LedgerPatience::in_next_activation(Time now, Duration lease) const {
    LedgerPatience next;
    if (now - yielded_at_ < share(lease, 2 * kRest)) next.unanswered_since_ = unanswered_since_;
    return next;
}

}  // namespace ddprun::rendezvous
