"""Groups of ranks: even and odd ranks add up separately, each rank has a group of its own, and neighbours exchange
values.

    ddprun --standalone --nproc-per-node=4 subgroups.py"""
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    # PyTorch requires that every rank creates every group, in one order.
    groups = [dist.new_group(range(first, world, 2)) for first in (0, 1)]
    alone = [dist.new_group([one]) for one in range(world)]
    own = torch.tensor([float(rank)])
    dist.all_reduce(own, group=groups[rank % 2])
    gathered = [None] * world
    dist.all_gather_object(gathered, {"rank": rank, "group": own.item()})
    single = torch.tensor([float(rank)])
    dist.all_reduce(single, group=alone[rank])
    received = torch.zeros(1)
    sending = dist.isend(torch.tensor([float(rank)]), (rank + 1) % world)
    dist.recv(received, (rank - 1) % world)
    sending.wait()
    print(f"RESULT rank={rank} group={own.item():g} alone={single.item():g} from={received.item():g} "
          f"all={[g['group'] for g in gathered]}", flush=True)
    dist.barrier()  # no rank destroys the group while another still uses it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
