"""Tensor parallel x data parallel: two workers share each layer, and each such pair has a share of the batch.

    ddprun --standalone --nproc-per-node=4 --max-restarts=3 tensor_parallel.py --snapshots /tmp/tensor

The mesh of workers is (replicas, --tensor). Neighbours in rank share layers: on GPUs they are on one node. `up` is cut
by columns and `down` by rows, so that a block needs one all-reduce forward and one backward. FSDP2 cuts what is left
once more over the replicas. Any number of workers resumes, if --tensor divides it."""
import argparse

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from deep_model import BATCH, HIDDEN, global_batch, loss_of, make_model
from sharded_snapshots import Snapshots, add_options, crash_if_asked


def main():
    options = argparse.ArgumentParser()
    add_options(options)
    options.add_argument("--tensor", type=int, default=2, help="the workers that share a layer")
    args = options.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model, replicas, replica = make_model(), 1, 0
    if world > 1:  # one process is the model as it is, for comparison
        if world % args.tensor or BATCH % (world // args.tensor) or HIDDEN % args.tensor:
            options.error(f"{world} workers cannot be cut into groups of --tensor {args.tensor} that share a batch of "
                          f"{BATCH} and {HIDDEN} columns")
        mesh = dist.init_device_mesh("cpu", (world // args.tensor, args.tensor), mesh_dim_names=("data", "tensor"))
        replicas, replica = mesh["data"].size(), mesh["data"].get_local_rank()
        for block in model.blocks.values():
            parallelize_module(block, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
            fully_shard(block, mesh=mesh["data"])
        fully_shard(model, mesh=mesh["data"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    snapshots = Snapshots(args.snapshots, model, optimizer)
    step, stop, total = snapshots.resume(), False, torch.zeros(1)
    while step < args.steps and not stop:
        crash_if_asked(args, step)
        x, y = (part.chunk(replicas)[replica] for part in global_batch(step))
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step, total = step + 1, loss.detach().clone()
        stop = snapshots.after(step, args.snapshot_every)
    dist.all_reduce(total)  # each replica's loss is there --tensor times
    up = model.blocks["0"].up.weight
    shape = tuple((up.to_local() if world > 1 else up).shape)
    print(f"RESULT rank={rank} step={step} loss={total.item() / world:.8f} up={shape}", flush=True)
    dist.barrier()  # no rank destroys the group while another still uses it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
