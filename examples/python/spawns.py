"""Processes inside a worker: each worker starts two processes with mp.spawn. They form a process group of their own.

    ddprun --standalone --nproc-per-node=2 spawns.py

The child processes must not use the launcher's store, which belongs to the workers. So they meet at a file."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

CHILDREN = 2


def child(index, meeting, outer):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=index, world_size=CHILDREN)
    value = torch.tensor([outer * 10.0 + index])
    dist.all_reduce(value)
    if index == 0:
        with open(meeting + ".sum", "w") as file:
            file.write(str(value.item()))
    dist.destroy_process_group()


def main():
    rank = int(os.environ["RANK"])
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        mp.spawn(child, args=(meeting, rank), nprocs=CHILDREN)
        with open(meeting + ".sum") as file:
            inner = float(file.read())
    dist.init_process_group("gloo")
    value = torch.tensor([inner])
    dist.all_reduce(value)
    print(f"RESULT rank={rank} inner={inner:g} all={value.item():g}", flush=True)
    dist.barrier()  # no rank destroys the group while another still uses it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
