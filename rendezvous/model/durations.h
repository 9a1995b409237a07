// Every duration that follows from the lease, and the inequalities that must hold between them.
// Values are shares of the lease: share(lease, kBeatPeriod). rendezvous/PROTOCOL.md, section 5,
// derives the inequalities; "rule N" means a rule of its section 3. A value that breaks an
// inequality does not compile. Pure.
//
// The default lease is 10 s. Durations that do not depend on the lease (time-outs of connections,
// pauses between log lines) stand where they are used.
#pragma once

#include <algorithm>
#include <cstddef>

#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// ---- Beats and Acks
inline constexpr double kBeatPeriod = 0.05;  // between two Beats of a node
// The leader sends an Ack at least this often (rule 2).
inline constexpr double kAckEach = 1.5 * kBeatPeriod;
// A Beat or an Ack that is more than this many periods old no longer extends a lease.
inline constexpr std::size_t kBeatsRemembered = 60, kAcksRemembered = 60;

// ---- the lease of a generation (rules 3 to 7)
// An echoed Ack keeps the generation for this long.
inline constexpr double kHold = 0.8;
// Wait after that: clock drift, and the time of a kill.
inline constexpr double kMargin = 0.2;
// Less was left before the lease grew: Ack to all now.
inline constexpr double kPushBelow = 0.45;
inline constexpr double kSilentOthers =
    1.0;  // rule 7 (c): a member has heard no leader for so long
// A takeover waits this long for all echoes (rule 9).
inline constexpr double kEchoes = 0.8;
// Faults that the rules allow for. The simulator lets clocks drift and kills last this much.
inline constexpr double kDrift = 0.0005;  // of a clock, against true time
inline constexpr double kKill = 0.04;     // from the deadline until the last worker is dead

// ---- who is a member of the next generation (rule 8)
inline constexpr double kConfirmedWithin = 0.45;  // the age of a candidate's newest echo
// The leader waits this long for absent members.
inline constexpr double kMembersAwaited = 0.6;
// Between two looks for nodes that joined late.
inline constexpr double kLateLook = 0.05;

// ---- who is silent
// Any one process may stand still this long without effect.
inline constexpr double kStall = 0.5;
// No Beat for this long: the leader closes the connection.
inline constexpr double kNodeSilent = 0.6;
inline constexpr double kScan = 0.1;  // between two looks for silent nodes
// A leader or a node itself stood still this long: it judges nobody before it has read what came.
inline constexpr double kStalled = 0.3;
// No Ack for this long: the node counts its leader as lost.
inline constexpr double kLeaderSilent = 0.6;
// After a stall of its own it waits this long for one.
inline constexpr double kAckAwaited = 2 * kBeatPeriod;
// In periods: a node silent this long after a failure was lost (rule 15).
inline constexpr double kBeatsOfSilence = 2.5;
// A hang noticed this late means that the leader itself stalled.
inline constexpr double kStoodStill = 0.3;

// ---- finding a leader, and becoming one (rules 9 to 11)
inline constexpr double kCallTurn = 0.15;   // for each node that is called
inline constexpr double kCallAgain = 0.02;  // after "wait", and between two rounds
// A dormant service names a leader that it heard this recently.
inline constexpr double kHeardWithin = 0.5;
// No member came: the newest generation is over (rule 9).
inline constexpr double kNobodyCame = 0.3;
inline constexpr double kInquiry = 0.2;     // between two rounds of Inquire
inline constexpr double kLeaderless = 2.0;  // no other node can lead: the node gives up

// ---- the ledger
inline constexpr double kCreateAgain = 0.1;  // after a create that failed
// Between two reads by a leader that holds no generation.
inline constexpr double kReadAgain = 1.0;
// No answer for this long: the leader yields.
inline constexpr double kLedgerSilent = 1.5;
// After yielding, the node does not lead for this long.
inline constexpr double kRest = 3.0;
// The end cannot be recorded: the job ends without the entry.
inline constexpr double kEndUnrecorded = 2.0;

// ---- a requeue (rule 26)
// Who holds a generation looks this often for a newer allocation. A later answer counts as none.
inline constexpr double kAllocationLook = 0.4, kAllocationAnswer = 0.5;
// A new allocation waits this long for workers of an earlier one that has recorded no end.
inline constexpr double kAllocationWait = 3.0;
// A leader without a generation records after this time that it leads. If another leader of the
// same allocation has done so, it asks that one first.
inline constexpr double kClaimsAfter = 0.1, kClaimsAgain = 0.5;

// ---- the end
// Absent nodes may connect for this long and get the verdict.
inline constexpr double kHearTheEnd = 1.0;
inline constexpr double kSignalAnswered =
    1.0;  // no answer to a signal's stop: the node stops alone

// Safety: all workers of a generation are dead when the next one starts. A deadline is computed
// from times of two clocks, so the drift counts twice.
static_assert(kMargin > 2 * kDrift * kHold + kKill);
// Rule 7 (c) waits as long as rule 7 (b).
static_assert(kSilentOthers >= kHold + kMargin);

// A stall of kStall has no effect. Six Beat periods of kHold are used up before it: two until an
// Ack, one until its echo, two until the member gets the news, one until all have echoed again.
static_assert(kHold - 6 * kBeatPeriod >= kStall);
// Each second Beat is answered.
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
// In rule 7 (b) a lost member is no longer connected.
static_assert(kNodeSilent + kScan <= kHold + kMargin - 3 * kBeatPeriod);
// Each second Beat is answered, and a node that has not stalled gets no more time.
static_assert(kAckAwaited >= 2 * kBeatPeriod && kStalled <= kLeaderSilent - kAckAwaited);
// A harmless stall of the leader makes nobody search for another.
static_assert(kLeaderSilent >= kStall + 2 * kBeatPeriod);
// No service names the leader that its caller has just lost.
static_assert(kHeardWithin + 2 * kBeatPeriod <= kLeaderSilent);
// One period is the usual distance of two Beats, so silence needs at least two.
static_assert(kBeatsOfSilence >= 2);

// A member may call two other nodes before it calls the new leader.
static_assert(kCallAgain < kCallTurn && kNobodyCame >= 2 * kCallTurn);
// Other leaders have time to try their ledger.
static_assert(kRest >= 2 * kLedgerSilent);
// The workers have stopped before their node gives up.
static_assert(kLeaderless >= kHold + kMargin);
// The last look before the new allocation's entry, the next one and its answer, each up to a stall
// late. The answer ends the lease, but what was granted until then lasts. A longer stall needs a
// look of its own.
static_assert(kAllocationLook + kStall + kAllocationAnswer + kStall + kHold + kMargin +
                  2 * kDrift * kAllocationWait <=
              kAllocationWait);
static_assert(kClaimsAgain >= 2 * kInquiry);
// Whatever may still extend the lease is remembered.
static_assert(kBeatsRemembered * kBeatPeriod >= kHold && kAcksRemembered * kBeatPeriod >= kHold);

// How long a new allocation of a job waits for workers of an earlier one.
inline Duration requeue_wait(const Times& times) {
    return std::max(share(times.lease, kAllocationWait), times.requeue_wait);
}

}  // namespace ddprun::rendezvous
