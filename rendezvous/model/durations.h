// Every duration that follows from the lease, and the inequalities that must hold between them.
// Values are shares of the lease in per mille: share(lease, kBeatPeriod). They are integers, since
// some inequalities hold by equality. rendezvous/PROTOCOL.md, section 5, derives the inequalities;
// "rule N" means a rule of its section 3. A value that breaks an inequality does not compile. Pure.
//
// The default lease is 10 s. Durations that do not depend on the lease (time-outs of connections,
// pauses between log lines) stand where they are used.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// ---- Beats and Acks
inline constexpr Share kBeatPeriod{50};  // between two Beats of a node
// The leader sends an Ack at least this often (rule 2).
inline constexpr Share kAckEach{75};  // 1.5 periods
// A Beat or an Ack that is more than this many periods old no longer extends a lease.
inline constexpr std::int64_t kBeatsRemembered = 60, kAcksRemembered = 60;

// ---- the lease of a generation (rules 3 to 7)
// An echoed Ack keeps the generation for this long.
inline constexpr Share kHold{800};
// Wait after that: clock drift, and the time of a kill.
inline constexpr Share kMargin{200};
// Less was left before the lease grew: Ack to all now.
inline constexpr Share kPushBelow{450};
inline constexpr Share kSilentOthers{1000};  // rule 7c: a member has heard no leader so long
// A takeover waits this long for all echoes (rule 9).
inline constexpr Share kEchoes{800};
// Faults that the rules allow for. The simulator lets clocks drift and kills last this much.
inline constexpr std::int64_t kDriftPpm = 500;  // millionths: of a clock, against true time
inline constexpr Share kKill{40};               // from the deadline until the last worker is dead

// ---- who is a member of the next generation (rule 8)
inline constexpr Share kConfirmedWithin{450};  // the age of a candidate's newest echo
// The leader waits this long for absent members.
inline constexpr Share kMembersAwaited{600};
// Between two looks for nodes that joined late.
inline constexpr Share kLateLook{50};

// ---- who is silent
// Any one process may stand still this long without effect.
inline constexpr Share kStall{500};
// No Beat for this long: the leader closes the connection.
inline constexpr Share kNodeSilent{600};
inline constexpr Share kScan{100};  // between two looks for silent nodes
// A leader or a node itself stood still this long: it judges nobody before it has read what came.
inline constexpr Share kStalled{300};
// No Ack for this long: the node counts its leader as lost.
inline constexpr Share kLeaderSilent{600};
// After a stall of its own it waits this long for one.
inline constexpr Share kAckAwaited = 2 * kBeatPeriod;
// In periods: a node silent this long after a failure was lost (rule 15).
inline constexpr Share kBeatsOfSilence{2500};
// A hang noticed this late means that the leader itself stalled.
inline constexpr Share kStoodStill{300};

// ---- finding a leader, and becoming one (rules 9 to 11)
inline constexpr Share kCallTurn{150};  // for each node that is called
inline constexpr Share kCallAgain{20};  // after "wait", and between two rounds
// A dormant service names a leader that it heard this recently.
inline constexpr Share kHeardWithin{500};
// No member came: the newest generation is over (rule 9).
inline constexpr Share kNobodyCame{300};
inline constexpr Share kInquiry{200};      // between two rounds of Inquire
inline constexpr Share kLeaderless{2000};  // no other node can lead: the node gives up

// ---- the ledger
inline constexpr Share kCreateAgain{100};  // after a create that failed
// Between two reads by a leader that holds no generation.
inline constexpr Share kReadAgain{1000};
// No answer for this long: the leader yields.
inline constexpr Share kLedgerSilent{1500};
// After yielding, the node does not lead for this long.
inline constexpr Share kRest{3000};
// The end cannot be recorded: the job ends without the entry.
inline constexpr Share kEndUnrecorded{2000};

// ---- a requeue (rule 26)
// Who holds a generation looks this often for a newer allocation. A later answer counts as none.
inline constexpr Share kAllocationLook{400}, kAllocationAnswer{500};
// A new allocation waits this long for workers of an earlier one that has recorded no end.
inline constexpr Share kAllocationWait{3000};
// A leader without a generation records after this time that it leads. If another leader of the
// same allocation has done so, it asks that one first.
inline constexpr Share kClaimsAfter{100}, kClaimsAgain{500};

// ---- the end
// Absent nodes may connect for this long and get the verdict.
inline constexpr Share kHearTheEnd{1000};
inline constexpr Share kSignalAnswered{1000};  // no answer to a signal's stop: the node stops alone

// Safety: all workers of a generation are dead when the next one starts. A deadline is computed
// from times of two clocks, so the drift counts twice.
static_assert(1'000'000 * kMargin > 2 * kDriftPpm * kHold + 1'000'000 * kKill);
// Rule 7c waits as long as rule 7b.
static_assert(kSilentOthers >= kHold + kMargin);

// A stall of kStall has no effect. Six Beat periods of kHold are used up before it: two until an
// Ack, one until its echo, two until the member gets the news, one until all have echoed again.
static_assert(kHold - 6 * kBeatPeriod >= kStall);
// Each second Beat is answered.
static_assert(2 * kAckEach == 3 * kBeatPeriod);
static_assert(kBeatPeriod < kAckEach && kAckEach <= 2 * kBeatPeriod);
// In a quiet job the lease never gets so short that a push is needed, and a push comes in time.
static_assert(3 * kBeatPeriod < kPushBelow && kPushBelow < kHold - 3 * kBeatPeriod);
// A healthy node is a candidate, and the lease that starts at its echo has not passed yet.
static_assert(3 * kBeatPeriod < kConfirmedWithin && kConfirmedWithin < kHold);
// The members' own deadlines lie at most five periods apart, so all of them can be back by then.
static_assert(kMembersAwaited >= kCallTurn + 5 * kBeatPeriod + kKill);
// By then every deadline that the previous leader granted has passed. A longer wait gains nothing.
static_assert(kEchoes <= kHold);

// Neither a stall of the leader nor a harmless stall of a node looks like silence.
static_assert(kStalled + kBeatPeriod < kNodeSilent && kStall + kBeatPeriod <= kNodeSilent);
// In rule 7b a lost member is no longer connected.
static_assert(kNodeSilent + kScan <= kHold + kMargin - 3 * kBeatPeriod);
// Each second Beat is answered, and a node that has not stalled gets no more time.
static_assert(kAckAwaited >= 2 * kBeatPeriod && kStalled <= kLeaderSilent - kAckAwaited);
// A harmless stall of the leader makes nobody search for another.
static_assert(kLeaderSilent >= kStall + 2 * kBeatPeriod);
// No service names the leader that its caller has just lost.
static_assert(kHeardWithin + 2 * kBeatPeriod <= kLeaderSilent);
// One period is the usual distance of two Beats, so silence needs at least two.
static_assert(kBeatsOfSilence >= Share{2000});

// A member may call two other nodes before it calls the new leader.
static_assert(kCallAgain < kCallTurn && kNobodyCame >= 2 * kCallTurn);
// Other leaders have time to try their ledger.
static_assert(kRest >= 2 * kLedgerSilent);
// The workers have stopped before their node gives up.
static_assert(kLeaderless >= kHold + kMargin);
// The last look before the new allocation's entry, the next one and its answer, each up to a stall
// late. The answer ends the lease, but what was granted until then lasts. A longer stall needs a
// look of its own.
static_assert(1'000'000 *
                      (kAllocationLook + kStall + kAllocationAnswer + kStall + kHold + kMargin) +
                  2 * kDriftPpm * kAllocationWait <=
              1'000'000 * kAllocationWait);
static_assert(kClaimsAgain >= 2 * kInquiry);
// Whatever may still extend the lease is remembered.
static_assert(kBeatsRemembered * kBeatPeriod >= kHold && kAcksRemembered * kBeatPeriod >= kHold);

// How long a new allocation of a job waits for workers of an earlier one.
inline Duration requeue_wait(const Times& times) {
    return std::max(share(times.lease, kAllocationWait), times.requeue_wait);
}

}  // namespace ddprun::rendezvous
