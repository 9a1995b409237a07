// Puts the newest entry of a ledger into a StatusReply (recorded_status.h).
#include "operator/ddpctl/recorded_status.h"

namespace ddprun::launcher {
namespace {

constexpr const char* kPhase = "nobody leads";

void add_members(control::StatusReply& reply, const rendezvous::Assignment& made) {
    reply.set_world_size(made.world_size);
    for (const rendezvous::Member& member : made.members) {
        control::Node& node = *reply.add_nodes();
        node.set_name(member.node.name);
        node.set_state("recorded");
        node.set_first_rank(member.rank_offset);
        node.set_workers(member.offer.slots);
        node.set_step(-1);
        node.set_address(member.offer.address);
        node.set_port(member.offer.service_port);
    }
}

}  // namespace

control::StatusReply status_of_ledger(const FoundJob& job, Duration now) {
    control::StatusReply reply;
    reply.set_run_id(job.name);
    reply.set_generation(-1);
    reply.set_step(-1);
    reply.set_snapshot(-1);
    reply.set_now(now.count());
    if (!job.newest) return reply;
    const rendezvous::Assignment& made = job.newest->assignment;
    reply.set_generation(made.generation.value);
    reply.set_cause(made.cause);
    reply.set_requeue(job.newest->requeue);
    reply.set_restarts(made.restarts);
    reply.set_max_restarts(made.max_restarts);
    return reply;
}

control::StatusReply recorded_status(const FoundJob& job, const std::string& why, Duration now) {
    control::StatusReply reply = status_of_ledger(job, now);
    reply.set_phase(kPhase);
    std::string waits = "nobody leads now";
    if (job.newest) {
        waits += "; " + job.newest->leader.name + " has led";
        add_members(reply, job.newest->assignment);
    }
    reply.set_waiting_for(waits +
                          "; the other nodes wait until its lease is over, then one of them "
                          "leads (" +
                          why + "); ask again");
    return reply;
}

bool is_recorded(const control::StatusReply& job) { return job.phase() == kPhase; }

}  // namespace ddprun::launcher
