"""DistributedDataParallel with snapshots: trains a small regression, writes a snapshot every ten steps, and continues from it
when it is started again.

    ddprun --standalone --nproc-per-node=2 --max-restarts=3 ddp_resume.py --snapshot /tmp/snapshot.pt

The result does not depend on interruptions, because the data of a step depend only on its number and on the rank."""
import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def batch(step, rank):
    maker = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(16, 8, generator=maker)
    return x, (x * torch.arange(8)).sum(1, keepdim=True)


def load(path, model, optimizer):
    if not os.path.exists(path):
        return 0
    snapshot = torch.load(path)
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    return snapshot["step"]


def save(path, model, optimizer, step):
    """Writes another file and renames it, so that a reader never finds an incomplete snapshot."""
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path + ".part")
    os.replace(path + ".part", path)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--snapshot", required=True)
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--crash-at-step", type=int, default=-1, help="in the first attempt, rank 1; to try the resume")
    args = options.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    start = load(args.snapshot, model, optimizer)
    parallel = DistributedDataParallel(model)
    for step in range(start, args.steps):
        if rank == 1 and step == args.crash_at_step and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os._exit(3)
        x, y = batch(step, rank)
        loss = torch.nn.functional.mse_loss(parallel(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and (step + 1) % 10 == 0:
            save(args.snapshot, model, optimizer, step + 1)
        dist.barrier()  # no rank runs ahead of the snapshot
    total = sum(p.double().sum() for p in model.parameters()).item()
    print(f"RESULT rank={rank} weights={total:.12f} loss={loss.item():.6f}", flush=True)
    dist.barrier()  # no rank destroys the group while another still uses it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
