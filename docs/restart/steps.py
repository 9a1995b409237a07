"""The training of the picture: DistributedDataParallel, a snapshot after each step; rank 1 ends once without a word.

Each rank notes when its steps end: generation and time, in the file RANK below the folder that is its argument.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

folder, last, crash = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rank, generation = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
notes = open(f"{folder}/{rank}", "a", buffering=1)
dist.init_process_group("gloo")
torch.manual_seed(rank)
model = torch.nn.Linear(64, 64)
snapshot = f"{folder}/snapshot.pt"
step = 0
if os.path.exists(snapshot):
    saved = torch.load(snapshot)
    model.load_state_dict(saved["model"])
    step = saved["step"]
parallel = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while step < last:
    time.sleep(0.04)  # stands for the work of a step
    if (rank, generation, step) == (1, 0, crash):
        print(f"{time.time()} crash", file=notes)
        os._exit(1)
    optimizer.zero_grad()
    parallel(torch.randn(8, 64)).square().mean().backward()
    optimizer.step()
    step += 1
    if rank == 0:
        torch.save({"model": model.state_dict(), "step": step}, snapshot + ".part")
        os.replace(snapshot + ".part", snapshot)
    print(f"{time.time()} {generation} {step}", file=notes)
    print(f"step={step} snapshot={step}", file=os.fdopen(os.dup(int(os.environ["DDPRUN_PROGRESS_FD"])), "w"))
dist.barrier()
