// A node's half of the lease: Beats, echoes and the deadline (lease_member.h).
#include "rendezvous/rules/lease_member.h"

#include <algorithm>

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {

void LeaseMember::welcomed(Time now, const Welcome& welcome) {
    // `silent` in a Beat counts from the last Ack of any *other* leader (PROTOCOL.md, rule 7 c).
    // When the leader changes, the Acks of the previous one move there.
    if (welcome.leader != leader_) {
        other_leader_heard_ = std::max(other_leader_heard_, leader_acked_);
        leader_acked_ = kLongAgo;
    }
    leader_ = welcome.leader;
    lease_ = welcome.times.lease;
    single_ = welcome.max_nodes == 1;
    connected_ = true;
    number_ = echo_ = 0;
    sent_.clear();
    heard_ = now;
}

Beat LeaseMember::beat(Time now) {
    sent_[++number_] = now;
    if (sent_.size() > kBeatsRemembered) sent_.erase(sent_.begin());
    last_beat_ = now;
    Beat beat;
    beat.number = number_;
    beat.echo = echo_;
    beat.floor = floor_;
    beat.seen = seen_;
    beat.running = running_;
    beat.silent = other_leader_heard_ == kLongAgo ? Duration::max() : now - other_leader_heard_;
    return beat;
}

LeaseMember::AckResult LeaseMember::ack(Time now, const Ack& ack) {
    if (!connected_) return {};
    heard_ = now;
    // The entry number is a fencing token. This leader does not know yet that another one has
    // written a newer entry, so it may extend nothing.
    if (ack.entry < seen_) return {};
    AckResult result{
        .accepted = true, .deadline_moved = false, .beat_now = see(ack.entry) || echo_ == 0};
    leader_acked_ = now;
    echo_ = std::max(echo_, ack.number);
    if (running_ == kNoGeneration || ack.held != running_ || !ack.remaining) return result;
    const auto until = granted_until(ack.beat, *ack.remaining);
    // A late Ack may carry less than an earlier one. The deadline only moves forward.
    if (until && *until > deadline_) {
        deadline_ = *until;
        result.deadline_moved = true;
    }
    return result;
}

std::optional<Time> LeaseMember::granted_until(std::int64_t beat, Duration remaining) const {
    const auto it = sent_.find(beat);
    if (it == sent_.end()) return std::nullopt;
    // Counted from the sending of the Beat, not from the arrival of the Ack. A slow network then
    // only shortens the deadline (PROTOCOL.md, rule 3).
    return remaining == Duration::max() ? kNever : it->second + remaining;
}

void LeaseMember::run(Generation generation, EntryNumber entry, Time deadline) {
    running_ = generation;
    deadline_ = deadline;
    see(entry);
}

// The floor rises only here or by raise_floor(), when no worker of the generation lives: the leader
// builds on this vow.
void LeaseMember::stopped() {
    raise_floor(running_);
    running_ = kNoGeneration;
    deadline_ = kNever;
}

bool LeaseMember::raise_floor(Generation generation) {
    if (generation <= floor_) return false;
    floor_ = generation;
    return true;
}

bool LeaseMember::see(EntryNumber entry) {
    if (entry <= seen_) return false;
    seen_ = entry;
    return true;
}

void LeaseMember::steps(Time now) {
    if (now - last_step_ > share(lease_, kStalled))
        heard_ = std::max(heard_, now - share(lease_, kLeaderSilent - kAckAwaited));
    last_step_ = now;
}

Time LeaseMember::next_beat() const {
    return connected_ && !single_ ? last_beat_ + share(lease_, kBeatPeriod) : kNever;
}

}  // namespace ddprun::rendezvous
