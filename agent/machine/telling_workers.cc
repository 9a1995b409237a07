// Passes on what workers can read of each other (agent/parts/notices.h). Nothing is decided by it.
// Part of the agent machine.
#include <utility>

#include "agent/machine/machine_state.h"

namespace ddprun::agent {

void MachineState::tell(Notice notice) {
    effects.push_back(TellWorkers{running->place.generation, std::move(notice)});
}

void MachineState::pass_on(const rendezvous::NewsItem& item) {
    if (running->passed_on.is_first(item)) tell(item);
}

void MachineState::on_news(const rendezvous::News& news) {
    if (!is_running(news.generation)) return;
    for (const rendezvous::NewsItem& item : news.items) pass_on(item);
}

// The other workers need not wait until the account of a death has been read from a slow file
// system. What ends after the stop began does so because of the stop.
void MachineState::on_lost(const WorkerLost& event) {
    if (!is_running(event.generation)) return;
    if (running->stopping_since && event.at >= *running->stopping_since) return;
    pass_on({rendezvous::NewsKind::worker_lost, config.node.name,
             running->place.rank_offset + event.local_rank, 1, event.exit_code, event.signal});
}

// Before the signal. Nothing of what is killed at once could read it.
void MachineState::tell_stopping(int signal, Duration grace) {
    if (signal == kKill || running->workers.have_ended()) return;
    Stopping stop{.signal = signal, .grace = grace};
    if (running->hint)
        stop = stopping_by(*running->hint);
    else if (ending)
        stop.reason = "end";
    tell(std::move(stop));
}

}  // namespace ddprun::agent
