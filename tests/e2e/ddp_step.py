"""An ordinary PyTorch job: process group, collectives, and one DistributedDataParallel step whose gradient is known."""
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
assert world == int(os.environ["WORLD_SIZE"]), world

total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
assert total.item() == world * (world + 1) / 2, total
names = [None] * world
dist.all_gather_object(names, f"rank {rank}")
assert names == [f"rank {r}" for r in range(world)], names
pair = dist.new_group([0, world - 1])
if rank in (0, world - 1):
    dist.barrier(pair)

model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.constant_(model.weight, float(rank))  # rank 0's counts
wrapped = torch.nn.parallel.DistributedDataParallel(model)
wrapped(torch.tensor([[rank + 1.0]])).sum().backward()
torch.optim.SGD(model.parameters(), lr=1.0).step()
mean = (world + 1) / 2
assert abs(model.weight.item() + mean) < 1e-6, model.weight
dist.barrier()
if rank == 0:
    print(f"{world} ranks: step done", flush=True)
dist.destroy_process_group()
os._exit(0)  # PyTorch 2.15 may abort while the interpreter ends (pytorch issue 190489)
