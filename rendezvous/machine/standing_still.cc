// Says who waits for whom when all workers of the generation stand still. StandstillWatch decides
// when. It is information, and ends the generation only where --hang-timeout asks for it. Part of
// the rendezvous machine.
#include "rendezvous/machine/machine_state.h"

#include <utility>

namespace ddprun::rendezvous {

// The first member any of whose workers moves ends the search: in a job that trains, that is the
// first one. Nothing: what all members do is not known, since one has not been heard.
std::optional<std::vector<RankStill>> MachineState::look_at_members() {
    std::vector<RankStill> ranks;
    std::size_t met = 0;
    for (const Member& member : held()->assignment.members) {
        standstill.met(++met);
        const NodeState* node = roster.find(member.node);
        if (!node || !node->connected() || node->beat.running != newest()) return std::nullopt;
        if (node->beat.still.empty()) return std::vector<RankStill>();
        for (const Still& still : node->beat.still)
            for (int i = 0; i < std::min(member.offer.slots, kStillWorkers); ++i)
                if (still.workers >> i & 1)
                    ranks.push_back({member.rank_offset + i, still.doing, still.lasted, still.usual,
                                     still.place, still.unmoved, still.lost_from, still.lost_to});
    }
    return ranks;
}

void MachineState::watch_for_standstill(Time now) {
    if (!holding() || stop.is_under_way()) return standstill.forget();
    if (!standstill.looks()) return;
    const auto ranks = look_at_members();
    // A link that is made anew moves nobody.
    if (!ranks) return;
    const int world_size = held()->assignment.world_size;
    if (const auto over = standstill.judged(now, judge_standstill(*ranks, world_size)))
        note(Note::Level::info, *over);
    const bool hangs = standing_is_hang(now);
    if (standstill.is_due(hangs)) ask_where(now);
    if (!standstill.asks()) return;
    if (!standstill.is_complete(now)) return wake_at(standstill.asks_until());
    const auto line = standstill.take(world_size, [this](int rank) { return name_of(rank); });
    if (!line) return;
    if (hangs) return end_standing(now, *line);
    note(Note::Level::warn, *line);
    if (std::exchange(told_what_now, true)) return;
    note(Note::Level::info,
         std::string("ddpctl why and ddpctl stacks RANK show more of a job that has a ledger in a "
                     "folder or etcd") +
             (limits().hang_timeout > Duration{}
                  ? ""
                  : "; --hang-timeout=SECONDS ends and restarts a job that stands still for so "
                    "long"));
}

// Which rank makes all others wait in each step. While they stand still nothing is learnt.
void MachineState::watch_for_straggler(Time now) {
    if (!straggler.is_due(now)) return;
    std::vector<NodePace> nodes;
    for (const Member& member : held()->assignment.members) {
        const NodeState* node = roster.find(member.node);
        if (!node || !node->connected() || node->beat.running != newest())
            return straggler.forget();
        if (!node->beat.still.empty()) return;
        nodes.push_back({member.rank_offset, member.offer.slots, node->beat.pace});
    }
    const auto found = find_straggler(nodes);
    if (straggler.judged(now, found))
        note(Note::Level::warn, straggler_sentence(*found, name_of(found->rank)));
}

// A rank that reports progress has not hung, whatever the others wait for.
bool MachineState::standing_is_hang(Time now) const {
    return standstill.is_hung(limits()) && !hang.has_reported_since(now - standstill.lasted());
}

void MachineState::end_standing(Time now, const std::string& line) {
    const WorkerOutcome outcome = standstill.outcome(line + " (" + hang_option(limits()) + ")",
                                                     [this](int rank) { return name_of(rank); });
    const Member* member = member_of(outcome.rank);
    facts.failed(member ? member->node.name : "", outcome, now - standstill.lasted());
    end_generation(now, outcome.sentence, Note::Level::warn);
}

void MachineState::ask_where(Time now) {
    std::map<NodeId, std::vector<int>> by_node;
    for (const int rank : standstill.ask(now))
        if (const Member* member = member_of(rank)) by_node[member->node].push_back(rank);
    std::set<NodeId> asked;
    for (const Member& member : held()->assignment.members) asked.insert(member.node);
    standstill.asked(std::move(asked));
    ask_members(by_node);
}

// All members keep what their workers do, and answer: those with ranks here say where these are,
// and each what its workers have recorded.
void MachineState::ask_members(const std::map<NodeId, std::vector<int>>& ranks) {
    for (const Member& member : held()->assignment.members) {
        const NodeState* node = roster.find(member.node);
        if (!node || !node->session) continue;
        const auto theirs = ranks.find(member.node);
        send(*node->session,
             Examine{newest(), theirs == ranks.end() ? std::vector<int>{} : theirs->second});
    }
}

// The member that has this rank; null: none has.
const Member* MachineState::member_of(int rank) const {
    for (const Member& member : held()->assignment.members)
        if (rank >= member.rank_offset && rank < member.rank_offset + member.offer.slots)
            return &member;
    return nullptr;
}

// "rank 3 (local 1 on gpu02)".
std::string MachineState::name_of(int rank) const {
    const Member* member = member_of(rank);
    if (!member) return "rank " + std::to_string(rank);
    return "rank " + std::to_string(rank) + " (local " +
           std::to_string(rank - member->rank_offset) + " on " + member->node.name + ")";
}

}  // namespace ddprun::rendezvous
