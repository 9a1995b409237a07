// Every duration of the protocol that follows from the lease, and what must hold between them.
// Values are shares of the lease: share(lease, kBeatPeriod). PROTOCOL.md, section 5, derives the
// inequalities; the rules that are named here stand in its section 3. Pure.
//
// A lease of 10 s is the default. Durations that do not follow from it (time-outs of connections,
// pauses between log lines) stand where they are used.
#pragma once

#include <cstddef>

namespace ddprun::rendezvous {

// ---- Beats and Acks
inline constexpr double kBeatPeriod = 0.05;            // between two Beats of a node
inline constexpr double kAckEach = 1.5 * kBeatPeriod;  // at least so often an Ack answers (rule 2)
// A Beat or an Ack that is older than this many periods extends no lease any more.
inline constexpr std::size_t kBeatsRemembered = 60, kAcksRemembered = 60;

// ---- the lease of a generation (rules 3 to 7)
inline constexpr double kHold = 0.8;        // an echoed Ack keeps the generation for so long
inline constexpr double kMargin = 0.2;      // then, before the next: clock drift, and the kill
inline constexpr double kPushBelow = 0.45;  // less was left before the lease grew: all hear at once
inline constexpr double kSilentOthers =
    1.0;                                // rule 7 (c): a member has heard no leader for so long
inline constexpr double kEchoes = 0.8;  // a takeover waits so long for all echoes (rule 9)
// What the rules allow for besides. The simulator's clocks drift and its kills last so much.
inline constexpr double kDrift = 0.0005;  // of a clock, against true time
inline constexpr double kKill = 0.04;     // from the deadline until the last worker is dead

// ---- who is a member of the next generation (rule 8)
inline constexpr double kConfirmedWithin = 0.45;  // the age of a candidate's newest echo
inline constexpr double kMembersAwaited = 0.6;    // absent members are waited for so long
inline constexpr double kLateLook = 0.05;         // between two looks for nodes that came late

// ---- who is silent
inline constexpr double kStall = 0.5;           // any one process may stand still so long, unharmed
inline constexpr double kNodeSilent = 0.6;      // no Beat: the leader gives up the connection
inline constexpr double kScan = 0.1;            // between two looks for silent nodes
inline constexpr double kStalled = 0.3;         // the leader itself stood still: it judges nobody
inline constexpr double kLeaderSilent = 0.6;    // no Ack: the node takes its leader for lost
inline constexpr double kBeatsOfSilence = 2.5;  // in periods: silent since a failure (rule 15)
inline constexpr double kStoodStill = 0.3;  // a hang that is seen so late is the leader's own stall

// ---- finding a leader, and becoming one (rules 9 to 11)
inline constexpr double kCallTurn = 0.15;    // for each node that is called
inline constexpr double kCallAgain = 0.02;   // after "wait", and between two rounds
inline constexpr double kHeardWithin = 0.5;  // a dormant service names the leader it heard last
inline constexpr double kNobodyCame = 0.3;   // no member came: the newest generation is over
inline constexpr double kInquiry = 0.2;      // between two rounds of Inquire
inline constexpr double kLeaderless = 2.0;   // no other node can lead: the node gives up

// ---- the ledger
inline constexpr double kCreateAgain = 0.1;    // after a create that failed
inline constexpr double kReadAgain = 1.0;      // between two looks of a leader that holds nothing
inline constexpr double kLedgerSilent = 1.5;   // no answer: the leader yields
inline constexpr double kRest = 3.0;           // after that the node does not lead
inline constexpr double kEndUnrecorded = 2.0;  // no answer to the end's entry: it ends all the same

// ---- the end
inline constexpr double kHearTheEnd = 1.0;  // absent nodes may come so long and hear it
inline constexpr double kSignalAnswered =
    1.0;  // no answer to a signal's stop: the node stops alone

// Safety: when the next generation starts, all workers of the one before are dead. A deadline is
// computed from times of two clocks, so the drift counts twice.
static_assert(kMargin > 2 * kDrift * kHold + kKill);
// Rule 7 (c) waits as long as rule 7 (b).
static_assert(kSilentOthers >= kHold + kMargin);

// A stall of kStall harms nobody: of kHold, two Beats until an Ack, one until its echo, two until
// the member was told and one until all have echoed again are used up.
static_assert(kHold - 6 * kBeatPeriod >= kStall);
// Each second Beat is answered.
static_assert(kBeatPeriod < kAckEach && kAckEach <= 2 * kBeatPeriod);
// In a quiet job the lease is never so short that it must be pushed, and a push comes in time.
static_assert(3 * kBeatPeriod < kPushBelow && kPushBelow < kHold - 3 * kBeatPeriod);
// A healthy node is a candidate, and a candidate's echo starts a lease that has not passed.
static_assert(3 * kBeatPeriod < kConfirmedWithin && kConfirmedWithin < kHold);
// The members' own deadlines lie at most five periods apart.
static_assert(kMembersAwaited >= kCallTurn + 5 * kBeatPeriod + kKill);
// By then every deadline of the leader before has passed: a longer wait would save nothing.
static_assert(kEchoes <= kHold);

// Neither the leader's own stall nor a harmless one of a node looks like silence.
static_assert(kStalled + kBeatPeriod < kNodeSilent && kStall + kBeatPeriod <= kNodeSilent);
// In rule 7 (b) a lost member is no longer connected.
static_assert(kNodeSilent + kScan <= kHold + kMargin - 3 * kBeatPeriod);
// A harmless stall of the leader makes nobody search for another.
static_assert(kLeaderSilent >= kStall + 2 * kBeatPeriod);
// No service names the leader that its caller has just lost.
static_assert(kHeardWithin + 2 * kBeatPeriod <= kLeaderSilent);
static_assert(kBeatsOfSilence >= 2);

// A member may use up two turns before it comes.
static_assert(kCallAgain < kCallTurn && kNobodyCame >= 2 * kCallTurn);
// Other leaders have time to try their ledger.
static_assert(kRest >= 2 * kLedgerSilent);
// The workers have stopped before their node gives up.
static_assert(kLeaderless >= kHold + kMargin);
// Whatever may still extend the lease is remembered.
static_assert(kBeatsRemembered * kBeatPeriod >= kHold && kAcksRemembered * kBeatPeriod >= kHold);

}  // namespace ddprun::rendezvous
