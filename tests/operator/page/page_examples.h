// Jobs as a page shows them: how they stand and what lies in their ledgers, without a job.
#pragma once

#include <string>

#include "operator/page/page_board.h"
#include "tests/operator/control/status_examples.h"
#include "tests/operator/ddpctl/examples.h"

namespace ddprun::launcher {

using rendezvous::examples::kNow;
using rendezvous::examples::kSecond;
inline constexpr Duration kMoment{kNow};

// Of `count` nodes with four workers each, all running.
inline control::StatusReply status_of_nodes(int count) {
    control::StatusReply job = rendezvous::examples::running();
    job.clear_nodes();
    job.set_world_size(4 * count);
    job.set_min_nodes(count);
    job.set_max_nodes(count);
    job.set_step(48210);
    job.set_snapshot(48000);
    job.set_ends(job.now() + 3 * 3600 * kSecond);
    job.mutable_usage()->set_leader_memory(61'440'000);
    job.mutable_usage()->set_largest_memory(70'000'000);
    job.mutable_usage()->set_log_bytes(123'456'789);
    job.mutable_usage()->set_store_operations(4321);
    job.mutable_usage()->set_store_waiters(2);
    for (int i = 0; i < count; ++i) {
        const std::string number = std::to_string(i + 1);
        rendezvous::examples::add_node(
            job, "gpu" + std::string(4 - std::min<std::size_t>(4, number.size()), '0') + number,
            "running", "", 4 * i);
        job.mutable_nodes(i)->set_step(48210);
    }
    return job;
}

// The same with a node in each state, and what they say of themselves.
inline control::StatusReply status_in_all_states(int count) {
    control::StatusReply job = status_of_nodes(count);
    constexpr const char* kStates[] = {"starting", "stopping",      "ready",   "spare",
                                       "lost",     "gone",          "missing", "unusable",
                                       "drained",  "out of service"};
    int i = 3;
    for (const char* state : kStates) {
        if (i >= count) break;
        control::Node& node = *job.mutable_nodes(i);
        node.set_state(state);
        node.set_why(std::string("it is ") + state + ", as this sentence says");
        if (state == std::string("lost")) node.set_heard(job.now() - 9 * kSecond);
        i += count > 100 ? 37 : 1;
    }
    job.set_runs(false);
    job.set_waiting_for("waiting for gpu0009: its connection is gone, and 2 nodes more");
    job.set_ended_by("node gpu0009 has confirmed nothing for 8.0 s (0.8 of lease 10 s)");
    return job;
}

// Four generations over an hour, so that each part of the time has something. `now`: since 1970.
inline rendezvous::LedgerHistory history_until(Duration now) {
    using std::chrono::minutes;
    rendezvous::LedgerHistory history;
    const char* causes[] = {"start", "rank 3 (local 3 on gpu0001) exited with 9",
                            "node gpu0002 has confirmed nothing for 8.0 s (0.8 of lease 10 s)",
                            "restarted by alice@login1 with ddpctl"};
    const Duration begun = now - minutes{60};
    const Duration after[] = {minutes{0}, minutes{14}, minutes{31}, minutes{55}};
    for (int i = 0; i < 4; ++i) {
        rendezvous::DatedEntry dated = dated_generation(i, Duration{});
        dated.written = begun + after[i];
        dated.entry.number.value = i;
        dated.entry.assignment.cause = causes[i];
        auto& record = dated.entry.time;
        record.begun = begun;
        record.at = dated.written;
        record.saves = true;
        record.spent.training = after[i] * 8 / 10;
        record.spent.lost = after[i] / 20;
        record.spent.saving = after[i] / 40;
        record.spent.importing = after[i] / 40;
        record.spent.setting_up = after[i] / 20;
        record.spent.restarting = after[i] / 40;
        record.spent.waiting = after[i] / 40;
        auto& totals = dated.entry.restart.totals;
        totals.restarts = i;
        totals.causes = {i > 0, 0, i > 1, i > 2, 0};
        totals.took[0] = std::chrono::milliseconds{1500 * i};
        history.entries.push_back(std::move(dated));
    }
    return history;
}

// The same after its end.
inline rendezvous::LedgerHistory ended_history(Duration now) {
    rendezvous::LedgerHistory history = history_until(now);
    rendezvous::DatedEntry end = history.entries.back();
    end.written = now;
    end.entry.number.value = 4;
    end.entry.time.at = now;
    end.entry.time.spent.training += std::chrono::minutes{5};
    end.entry.act = rendezvous::EndsJob{rendezvous::ended(rendezvous::Verdict::worker_failed, 7,
                                                          "rank 2 on gpu0001 exited with 7")};
    history.entries.push_back(std::move(end));
    return history;
}

}  // namespace ddprun::launcher
