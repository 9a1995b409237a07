// The fields of the nouns of rendezvous/model/model.h that are sent or recorded, with their bounds.
// fields.h explains the words. Bounds may depend on fields above them, which are read before.
#pragma once

#include <algorithm>

#include "rendezvous/model/messages.h"
#include "rendezvous/wire/fields.h"

namespace ddprun::rendezvous {

inline constexpr std::size_t kMaxAddress = 64;  // longer than any IPv6 address with its zone
inline constexpr Text kAddress{1, kMaxAddress};
inline constexpr Whole kNodes{1, static_cast<std::int64_t>(kMaxNodes)};

// Any 64-bit number is a valid incarnation.
void each_field(auto& v, Is<NodeId> auto& node) {
    v(DDPRUN_FIELD(name), node.name, Text{1, kMaxName});
    v(DDPRUN_FIELD(incarnation), node.incarnation, Any{});
}

// A lease of 0 would end every generation at once; the others may be 0.
void each_field(auto& v, Is<Times> auto& times) {
    v(DDPRUN_FIELD(lease), times.lease, Time{std::chrono::milliseconds{1}, kYear});
    v(DDPRUN_FIELD(join_timeout), times.join_timeout, kTime);
    v(DDPRUN_FIELD(last_call), times.last_call, kTime);
    v(DDPRUN_FIELD(requeue_wait), times.requeue_wait, kTime);
}

// `order` is not sent.
void each_field(auto& v, Is<Limits> auto& limits) {
    v(DDPRUN_FIELD(min_nodes), limits.min_nodes, kNodes);
    v(DDPRUN_FIELD(max_nodes), limits.max_nodes, Whole{limits.min_nodes, kNodes.high});
    v(DDPRUN_FIELD(max_restarts), limits.max_restarts, Whole{kAutoRestarts, kMaxWorld});
    v(DDPRUN_FIELD(crash_loop), limits.crash_loop, kCount);
    v(DDPRUN_FIELD(times), limits.times, Any{});
    v(DDPRUN_FIELD(hang_timeout), limits.hang_timeout, kTime);
    v(DDPRUN_FIELD(hang_auto), limits.hang_auto, Any{});
    v(DDPRUN_FIELD(pmi), limits.pmi, Any{});
    v(DDPRUN_FIELD(no_blame), limits.blame, Inverted{});
    v(DDPRUN_FIELD(on_join), limits.on_join, up_to(OnJoin::spare));
    v(DDPRUN_FIELD(join_interval), limits.join_interval, kTime);
}

// Whoever reads them checks that MIN and MAX come together.
void each_field(auto& v, Is<OperatorLimits> auto& limits) {
    v(DDPRUN_FIELD(min_nodes), limits.min_nodes, kNodes);
    v(DDPRUN_FIELD(max_nodes), limits.max_nodes, Whole{limits.min_nodes.value_or(1), kNodes.high});
    v(DDPRUN_FIELD(max_restarts), limits.max_restarts, kCount);
    v(DDPRUN_FIELD(by), limits.by, AbsentIf{std::string(), kSentence});
}

void each_field(auto& v, Is<Peer> auto& peer) {
    v(DDPRUN_FIELD(node), peer.node, Any{});
    v(DDPRUN_FIELD(address), peer.address, kName);
    v(DDPRUN_FIELD(port), peer.port, kPort);
}

void each_field(auto& v, Is<Offer> auto& offer) {
    // A node without slots could never be a member.
    v(DDPRUN_FIELD(slots), offer.slots, Whole{1, kMaxSlots});
    v(DDPRUN_FIELD(node_rank), offer.node_rank, Whole{0, kNodes.high});
    v(DDPRUN_FIELD(address), offer.address, kName);
    // A host of many containers may have more than this; the first ones do.
    v(DDPRUN_FIELD(addresses), offer.addresses, List{kMaxAddresses, kAddress});
    v(DDPRUN_FIELD(service_port), offer.service_port, kPort);
    v(DDPRUN_FIELD(store_port), offer.store_port, kPort);
    v(DDPRUN_FIELD(role), offer.role, kName);
}

void each_field(auto& v, Is<StoreCaller> auto& caller) {
    v(DDPRUN_FIELD(peer), caller.peer, Any{});
    v(DDPRUN_FIELD(addresses), caller.addresses, List{kMaxAddresses, kAddress});
}

// A place whose numbers contradict each other would give workers wrong ranks, so each one bounds
// the next. Each node has one worker at least.
void each_field(auto& v, Is<NodePlace> auto& place) {
    v(DDPRUN_FIELD(generation), place.generation, kNumberOrNone);
    v(DDPRUN_FIELD(nodes), place.nodes, kNodes);
    v(DDPRUN_FIELD(node_rank), place.node_rank, Whole{0, place.nodes - 1});
    v(DDPRUN_FIELD(world_size), place.world_size, Whole{place.nodes, kMaxWorld});
    v(DDPRUN_FIELD(slots), place.slots, Whole{1, std::min(kMaxSlots, place.world_size)});
    v(DDPRUN_FIELD(rank_offset), place.rank_offset, Whole{0, place.world_size - place.slots});
    v(DDPRUN_FIELD(equal_slots), place.equal_slots, Any{});
    v(DDPRUN_FIELD(role_world_size), place.role_world_size, Whole{place.slots, place.world_size});
    v(DDPRUN_FIELD(role_rank_offset), place.role_rank_offset,
      Whole{0, place.role_world_size - place.slots});
    v(DDPRUN_FIELD(master_address), place.master_address, kName);
    v(DDPRUN_FIELD(master_port), place.master_port, kPort);
    v(DDPRUN_FIELD(max_restarts), place.max_restarts, Whole{kAutoRestarts, kMaxWorld});
    v(DDPRUN_FIELD(cold), place.cold, Any{});
    // The first node gets all members, for access to the workers' store.
    v(DDPRUN_FIELD(callers), place.callers, Items{kMaxNodes});
    // Only if several nodes share a host (--task-per-worker).
    v(DDPRUN_FIELD(shared), place.shared, [&place](auto& inner, auto& host) {
        inner(DDPRUN_FIELD(hosts), host.hosts, Whole{1, place.nodes});
        inner(DDPRUN_FIELD(rank), host.rank, Whole{0, host.hosts - 1});
        inner(DDPRUN_FIELD(workers), host.workers, Whole{place.slots, place.world_size});
        inner(DDPRUN_FIELD(first_local_rank), host.first_local_rank,
              Whole{0, host.workers - place.slots});
        inner(DDPRUN_FIELD(equal), host.equal, Any{});
    });
}

// The sentence comes first: if the budget of texts runs out, the last lines are cut.
void each_field(auto& v, Is<WorkerOutcome> auto& outcome) {
    v(DDPRUN_FIELD(rank), outcome.rank, kCount);
    v(DDPRUN_FIELD(local_rank), outcome.local_rank, Whole{0, kMaxSlots - 1});
    v(DDPRUN_FIELD(pid), outcome.pid, kNumber);
    // What the kernel can report; a signal has a field of its own. Linux numbers them up to 64.
    v(DDPRUN_FIELD(exit_code), outcome.exit_code, Whole{0, 255});
    v(DDPRUN_FIELD(signal), outcome.signal, Whole{0, 64});
    v(DDPRUN_FIELD(age), outcome.age, kTime);
    v(DDPRUN_FIELD(sentence), outcome.sentence, kOutput);
    v(DDPRUN_FIELD(error), outcome.error, kOutput);
    v(DDPRUN_FIELD(tail), outcome.tail, List{kMaxTail, kOutput, Keep::last});
    v(DDPRUN_FIELD(hung), outcome.hung, AbsentIf{false, Any{}});
    v(DDPRUN_FIELD(stack), outcome.stack,
      AbsentIf{std::vector<std::string>{}, List{kMaxTail, kOutput}});
    v(DDPRUN_FIELD(error_file), outcome.error_file, kOutput);
    v(DDPRUN_FIELD(core_dumped), outcome.core_dumped, Any{});
    v(DDPRUN_FIELD(out_of_memory), outcome.out_of_memory, Any{});
    v(DDPRUN_FIELD(remarks), outcome.remarks, List{kMaxRemarks, kOutput});
    v(DDPRUN_FIELD(warm), outcome.warm, AbsentIf{false, Any{}});
}

void each_field(auto& v, Is<Consequence> auto& consequence) {
    v(DDPRUN_FIELD(node), consequence.node, kName);
    v(DDPRUN_FIELD(outcome), consequence.outcome, Any{});
    v(DDPRUN_FIELD(after), consequence.after, kTime);
}

void each_field(auto& v, Is<NodeLoss> auto& loss) {
    v(DDPRUN_FIELD(node), loss.node, kName);
    v(DDPRUN_FIELD(sentence), loss.sentence, kSentence);
}

void each_field(auto& v, Is<Ending> auto& ending) {
    v(DDPRUN_FIELD(verdict), ending.verdict, up_to(Verdict::left));
    v(DDPRUN_FIELD(code), ending.code, Whole{0, 255});
    v(DDPRUN_FIELD(sentence), ending.sentence, kSentence);
    v(DDPRUN_FIELD(first_failure), ending.first_failure, Any{});
    v(DDPRUN_FIELD(first_failure_node), ending.first_failure_node, kName);
    v(DDPRUN_FIELD(consequences), ending.consequences, kCount);
    v(DDPRUN_FIELD(told_consequences), ending.told_consequences, Items{kConsequencesTold});
    v(DDPRUN_FIELD(loss), ending.loss, Any{});
    v(DDPRUN_FIELD(generation), ending.generation, AbsentIf{kNoGeneration, kNumberOrNone});
    v(DDPRUN_FIELD(at), ending.at, kAnyPast);
    v(DDPRUN_FIELD(requeue), ending.requeue, AbsentIf{false, Any{}});
}

}  // namespace ddprun::rendezvous
