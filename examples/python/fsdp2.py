"""FSDP2: each worker holds a part of every parameter, of its gradient and of the optimizer's state.

    ddprun --standalone --nproc-per-node=3 --max-restarts=3 fsdp2.py --snapshots /tmp/fsdp2

Each worker also writes its part of the snapshot. Any other number of workers resumes from it: --nproc-per-node=2."""
import argparse

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from deep_model import BATCH, global_batch, loss_of, make_model
from sharded_snapshots import Snapshots, add_options, crash_if_asked


def main():
    options = argparse.ArgumentParser()
    add_options(options)
    args = options.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if BATCH % world:
        options.error(f"{world} workers cannot share a batch of {BATCH}; take a divisor of it")
    model = make_model()
    if world > 1:  # one process is the model as it is, for comparison
        mesh = dist.init_device_mesh("cpu", (world,))
        for block in model.blocks.values():
            fully_shard(block, mesh=mesh)  # gathered just before it computes, and freed behind it
        fully_shard(model, mesh=mesh)  # the rest
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    snapshots = Snapshots(args.snapshots, model, optimizer)
    step, stop, total = snapshots.resume(), False, torch.zeros(1)
    while step < args.steps and not stop:
        crash_if_asked(args, step)
        x, y = (part.chunk(world)[rank] for part in global_batch(step))
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # reduce-scatter: each worker gets the mean of its part
        optimizer.step()
        step, total = step + 1, loss.detach().clone()
        stop = snapshots.after(step, args.snapshot_every)
    dist.all_reduce(total)
    own = sum(p.to_local().numel() if world > 1 else p.numel() for p in model.parameters())
    print(f"RESULT rank={rank} step={step} loss={total.item() / world:.8f} parameters={own}", flush=True)
    dist.barrier()  # no rank destroys the group while another still uses it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
