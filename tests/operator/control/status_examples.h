// How a job stands, as its leader tells it: one that runs, and one that waits.
#pragma once

#include <string>

#include "proto/control.pb.h"

namespace ddprun::rendezvous::examples {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kNow = 1'800'000'000 * kSecond;

inline void add_node(control::StatusReply& job, const std::string& name, const std::string& state,
                     const std::string& why, int first_rank) {
    control::Node& node = *job.add_nodes();
    node.set_name(name);
    node.set_state(state);
    node.set_why(why);
    node.set_first_rank(first_rank);
    node.set_workers(4);
}

// Generation 2 runs on n1 and n2, led by n1.
inline control::StatusReply running() {
    control::StatusReply job;
    job.set_run_id("8812");
    job.set_leader("n1");
    job.set_phase("running");
    job.set_generation(2);
    job.set_runs(true);
    job.set_since(kNow - 60 * kSecond);
    job.set_now(kNow);
    job.set_world_size(8);
    job.set_restarts(1);
    job.set_max_restarts(3);
    job.set_min_nodes(1);
    job.set_max_nodes(2);
    job.set_step(-1);
    job.set_snapshot(-1);
    job.set_cause("rank 3 exited with 9");
    add_node(job, "n1", "running", "", 0);
    add_node(job, "n2", "running", "", 4);
    return job;
}

// The same job, while n2 is gone.
inline control::StatusReply waiting() {
    control::StatusReply job = running();
    job.set_runs(false);
    job.set_phase("gathering");
    job.set_waiting_for("waiting for n2: its ddprun has ended");
    job.set_ended_by("node n2 is gone: its ddprun has ended");
    job.mutable_nodes(1)->set_state("gone");
    job.mutable_nodes(1)->set_why("its ddprun has ended");
    job.mutable_nodes(1)->set_heard(kNow - 7 * kSecond);
    return job;
}

}  // namespace ddprun::rendezvous::examples
