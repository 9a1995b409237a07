"""Pipeline parallel: each worker has some layers, and the micro-batches of a step pass one after the other.

    ddprun --standalone --nproc-per-node=2 --max-restarts=3 pipeline.py --snapshots /tmp/pipeline

The order is 1F1B: after the first micro-batches each worker computes one forward and one backward in turn. Any number
of workers up to the number of blocks resumes: the names in a snapshot are those of the whole model."""
import argparse

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from deep_model import BATCH, BLOCKS, global_batch, loss_of, make_model
from sharded_snapshots import Snapshots, add_options, crash_if_asked


def keep_stage(model, stage, stages):
    """Drops the layers of the other stages. The names of the rest stay."""
    first, end = (BLOCKS * edge // stages for edge in (stage, stage + 1))
    for i in range(BLOCKS):
        if not first <= i < end:
            del model.blocks[str(i)]
    if stage > 0:
        model.first = None
    if stage < stages - 1:
        model.last = None
    return model


def main():
    options = argparse.ArgumentParser()
    add_options(options)
    options.add_argument("--micro-batches", type=int, default=6)
    args = options.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if world > BLOCKS or BATCH % args.micro_batches:
        options.error(f"{world} workers and --micro-batches {args.micro_batches}: there are {BLOCKS} blocks for the "
                      f"workers and {BATCH} samples for the micro-batches")
    model = keep_stage(make_model(), rank, world)
    if world > 1:  # one process is the model as it is, for comparison
        stage = PipelineStage(model, rank, world, torch.device("cpu"))
        schedule = Schedule1F1B(stage, args.micro_batches, loss_fn=loss_of)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    snapshots = Snapshots(args.snapshots, model, optimizer)
    step, stop, total = snapshots.resume(), False, torch.zeros(1)
    while step < args.steps and not stop:
        crash_if_asked(args, step)
        x, y = global_batch(step)
        losses = []
        optimizer.zero_grad()
        if world == 1:
            losses.append(loss_of(model(x), y))
            losses[0].backward()
        else:  # the first worker has the inputs, the last one the targets and the losses
            schedule.step(*[x] if rank == 0 else [], target=y if rank == world - 1 else None, losses=losses)
        optimizer.step()
        step, total = step + 1, torch.stack(losses).detach().mean() if losses else torch.zeros(())
        stop = snapshots.after(step, args.snapshot_every)
    dist.all_reduce(total)  # zero on all workers but the last
    print(f"RESULT rank={rank} step={step} loss={total.item():.8f} blocks={len(model.blocks)}", flush=True)
    dist.barrier()  # no rank destroys the group while another still uses it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
