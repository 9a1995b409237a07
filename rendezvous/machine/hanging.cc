// Ends a generation that makes no progress (PROTOCOL.md, rule 22). HangWatch decides when, and what
// to ask the nodes. Part of the rendezvous machine.
#include <algorithm>

#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {

void MachineState::watch_for_hang(Time now) {
    if (limits().hang_timeout <= Duration{} || !holding() || stop.is_under_way() ||
        all_workers_have_ended())
        return hang.stop_examining();
    if (!hang.counts()) return miss_reports(now);
    if (hang.resumed())
        note(Note::Level::info, "a worker reports progress again; the generation continues");
    if (!hang.examines()) {
        if (!hang.is_due(now, limits())) return wake_at(hang.looks_at(limits()));
        examine(now);
    }
    if (hang.is_complete(now)) return end_hung(now);
    wake_at(hang.examined_by());
}

// The nodes wait for what the workers have left running (--wait-for-helpers).
bool MachineState::all_workers_have_ended() const {
    return std::ranges::all_of(held()->assignment.members, [this](const Member& member) {
        const NodeState* node = roster.find(member.node);
        return node && node->beat.running == newest() && node->beat.reports > 0 &&
               node->beat.slowest.empty();
    });
}

// A program that reports nothing is never ended for that. Its user believes it to be watched, so
// one line says that it is not. A leader that follows may say it once more.
void MachineState::miss_reports(Time now) {
    if (said_unjudged || limits().hang_auto) return;
    const Time at = hangs_at(held()->since, limits());
    if (now < at) return wake_at(at);
    said_unjudged = true;
    note(Note::Level::warn, unjudged_sentence(now - held()->since, limits()));
}

// The examination comes before any stop, because only living workers can be examined.
void MachineState::examine(Time now) {
    std::vector<NodeSteps> nodes;
    for (const Member& member : held()->assignment.members) {
        const NodeState* node = roster.find(member.node);
        if (node && node->connected() && node->beat.running == newest())
            nodes.push_back({member, node->beat.slowest});
    }
    ask_members(hang.examine(now, nodes));
}

void MachineState::end_hung(Time now) {
    // A hang counts as a failure of the slowest worker, so it uses up a restart. Its time is the
    // last progress.
    const HangWatch::Hung hung = hang.take(now, limits(), held()->assignment.world_size,
                                           [this](int rank) { return name_of(rank); });
    facts.failed(hung.node, hung.outcome, hung.since);
    if (hung.to_blame) record.ended_by(hung.node);
    end_generation(now, hung.outcome.sentence, Note::Level::warn);
}

}  // namespace ddprun::rendezvous
