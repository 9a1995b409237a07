// Fields of StatusReply and WhyReply (control_messages.h).
#include "operator/control/control_messages.h"

namespace ddprun::rendezvous {
namespace {

void set(control::Node& to, const NodeStatus& node) {
    to.set_name(node.name);
    to.set_state(to_string(node.state));
    to.set_why(node.why);
    to.set_first_rank(node.first_rank);
    to.set_workers(node.workers);
    to.set_heard(node.heard.count());
    to.set_step(node.step);
    to.set_address(node.address);
    to.set_port(node.port);
}

void set(control::Usage& to, const JobUsage& usage) {
    to.set_leader_memory(usage.leader_memory);
    to.set_largest_memory(usage.largest_memory);
    to.set_log_bytes(usage.log_bytes);
    to.set_store_operations(usage.store_operations);
    to.set_store_waiters(usage.store_waiters);
}

}  // namespace

control::StatusReply to_reply(const JobStatus& job, const std::optional<Ending>& ended,
                              Duration now) {
    control::StatusReply reply;
    reply.set_run_id(job.run_id);
    reply.set_phase(job.phase);
    reply.set_leader(job.leader.name);
    reply.set_requeue(job.requeue);
    reply.set_generation(job.generation.value);
    reply.set_runs(job.runs);
    reply.set_since(job.since.count());
    reply.set_cause(job.cause);
    reply.set_world_size(job.world_size);
    reply.set_restarts(job.restarts);
    reply.set_max_restarts(job.max_restarts);
    reply.set_min_nodes(job.min_nodes);
    reply.set_max_nodes(job.max_nodes);
    reply.set_step(job.step);
    reply.set_snapshot(job.snapshot);
    reply.set_waiting_for(job.waiting_for);
    reply.set_stopping(job.stopping);
    reply.set_snapshot_asked(job.snapshot_asked);
    reply.set_standstill(job.standstill);
    reply.set_ended_by(job.ended_by);
    if (job.ends) reply.set_ends(job.ends->count());
    if (job.kills) reply.set_kills(job.kills->count());
    set(*reply.mutable_usage(), job.usage);
    for (const NodeStatus& node : job.nodes) set(*reply.add_nodes(), node);
    if (ended) {
        reply.mutable_ended()->set_code(ended->code);
        reply.mutable_ended()->set_sentence(ended->sentence);
    }
    reply.set_now(now.count());
    return reply;
}

OperatorLimits to_limits(const control::LimitsRequest& asked) {
    OperatorLimits limits;
    if (asked.has_min_nodes()) limits.min_nodes = asked.min_nodes();
    if (asked.has_max_nodes()) limits.max_nodes = asked.max_nodes();
    if (asked.has_max_restarts()) limits.max_restarts = asked.max_restarts();
    return limits;
}

control::WhyReply why(const JobStatus& job) {
    control::WhyReply reply;
    for (const std::string* sentence : {&job.stopping, &job.waiting_for, &job.standstill})
        if (!sentence->empty()) reply.add_sentences(*sentence);
    // What ended the last generation says why the job waits.
    if (!job.runs && !job.ended_by.empty()) reply.add_sentences(job.ended_by);
    return reply;
}

}  // namespace ddprun::rendezvous
