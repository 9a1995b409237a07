// Who waits for whom, judged from what the nodes see of workers that stand still. Pure functions.
//
// Only a job all of whose workers stand still is judged, so that a job in which anything moves is
// never taken for one that waits. The kinds are looked for in this order, the first one counts:
//
//     stopped       a rank is stopped by a signal
//     in_kernel     a rank hangs in an uninterruptible sleep
//     never_came    some ranks are in init_process_group() or new_group(), and others are not
//     waits_for     some ranks are in a collective, and others are not: all wait for those
//     no_network    all ranks are in a collective, and what some send is not acknowledged
//     mismatch      all ranks are in a collective, but not at the same line of the program
//     all_inside    all ranks are in a collective, at the same line
//
// `all_inside` are different numbers of calls, or a network that loses without repeating; from
// outside nobody can tell which. A long evaluation on one rank looks the same as a rank that hangs.
// So this is information; is_hang() says when it becomes a verdict.
//
// Source: what was measured on planted hangs with Gloo (PyTorch 2.15): an idle thread
// `pt_gloo_runloop` waits in futex() without a timeout, one inside a collective with one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/model/messages.h"
#include "rendezvous/model/standstill.h"

namespace ddprun::rendezvous {

struct RankStill {
    int rank = 0;
    Doing doing = Doing::waits;
    Duration lasted{}, usual{};
    std::uint32_t place = 0;
    Duration unmoved{};
    std::uint32_t lost_from = 0, lost_to = 0;
};

struct Standstill {
    enum class Kind { stopped, in_kernel, never_came, waits_for, no_network, mismatch, all_inside };
    Kind kind = Kind::all_inside;
    std::vector<RankStill> odd;       // ranks that differ from the rest; all_inside: none
    std::vector<RankStill> ordinary;  // the others
    Duration lasted{};                // for how long all of them have stood still
    Duration usual{};                 // the longest usual pause of any rank
    Duration unmoved{};               // for how long nothing at all has moved in the odd ranks
    // Whether it is the same standstill, which may have lasted longer meanwhile.
    bool same_as(const Standstill& other) const;
};

// `ranks`: each rank that stands still, once. Nothing unless all `world_size` do, and one of the
// kinds above is there.
std::optional<Standstill> judge_standstill(const std::vector<RankStill>& ranks, int world_size);

// From when on it is worth a line: 15 s, or ten usual pauses.
Duration told_after(const Standstill& standstill);

// Whether it is a hang by now. `longest`: the longest standstill of this job that has ended by
// itself.
//
// With --hang-timeout=SECONDS: when it has lasted so long, and half a lease. While all wait for a
// rank outside, it must also have lasted twice as long as `longest`; as long is enough when nothing
// moves in that rank.
//
// With --hang-timeout=auto (limits.hang_auto), never before ten usual pauses:
//
//     ranks in different collectives, which cannot end             1 min
//     stopped, in the kernel, no network, all inside, or
//     nothing at all moves in the ranks all wait for               5 min
//     something moves in them                                      hang_timeout: half an hour
//
// The last one is the time after which Gloo itself gives up.
bool is_hang(const Standstill& standstill, const Limits& limits, Duration longest);

// Where a rank is, for the sentence.
struct Whereabouts {
    std::string who;         // "rank 2 (local 0 on n17)"
    std::string where = {};  // "evaluate (eval.py:88)"; empty: not known
    std::string gpu = {};    // "GPU 3 at 100 %"; empty: not known
};
// Looks one up by its rank.
using FindWhereabouts = std::function<Whereabouts(int rank)>;
// Ranks to ask where they are, for the sentence: the first odd ones, and an ordinary one.
std::vector<int> worth_asking(const Standstill& standstill);
// For example "3 ranks have waited for 15 s in a collective, in train (train.py:9), for rank 2
// (local 0 on n17), which sleeps in evaluate (eval.py:88)".
std::string standstill_sentence(const Standstill& standstill, const FindWhereabouts& find);

}  // namespace ddprun::rendezvous
