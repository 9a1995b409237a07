#include "agent/worker_plan.h"

#include <algorithm>

namespace ddprun::agent {

WorkerPlace place_of(const WorkerPlan& plan, const rendezvous::Assignment& assignment,
                     int local_rank) {
    const rendezvous::Member& self = *assignment.find(plan.node);
    WorkerPlace place;
    place.rank = self.rank_offset + local_rank;
    place.local_rank = local_rank;
    place.world_size = assignment.world_size;
    place.local_world_size = self.offer.slots;
    place.group_rank = static_cast<int>(&self - assignment.members.data());
    place.group_world_size = static_cast<int>(assignment.members.size());
    place.role = plan.role;
    place.role_rank = local_rank;
    place.role_world_size = 0;
    for (const rendezvous::Member& member : assignment.members) {
        if (member.offer.role != self.offer.role) continue;
        place.role_world_size += member.offer.slots;
        if (member.rank_offset < self.rank_offset) place.role_rank += member.offer.slots;
    }
    place.equal_nodes = std::ranges::all_of(assignment.members, [&](const auto& member) {
        return member.offer.slots == self.offer.slots;
    });
    place.master_addr = assignment.master().address;
    place.master_port = assignment.master().store_port;
    place.generation = assignment.generation.value;
    place.max_restarts = assignment.max_restarts;
    place.run_id = plan.run_id;
    place.omp_num_threads = plan.omp_num_threads;
    place.progress_fd = kProgressFd;
    place.signal_names = plan.signal_names;
    place.slurm_env = plan.slurm_env;
    if (!plan.more.empty()) place.more = plan.more[static_cast<std::size_t>(local_rank)];
    return place;
}

}  // namespace ddprun::agent
