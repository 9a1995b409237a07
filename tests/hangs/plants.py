"""Plants a hang, or a pause that is none, in a small DDP training: plants.py KIND [RANK].

Trains with small steps, and from step 20 on the rank (default 1) does what KIND says. A pause ends after
SECONDS_OF_PAUSE (default 25); then the training goes on for 90 steps, 18 seconds. STEPS and STEP change how many steps
come before, and the seconds between them. With END_OF_TRAINING, the name of a file, the training ends when that is
there.
"""
import os
import sys
import time

import torch
import torch.distributed as dist

import plants_of_all
import plants_of_one
import plants_of_pauses

kind, odd = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
rank = int(os.environ["RANK"])


def step():
    optimizer.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()


def is_seen_by_a_rank(path):
    seen = torch.tensor(float(os.path.exists(path)))
    dist.all_reduce(seen)
    return seen > 0


def train():
    for i in range(int(os.environ.get("STEPS", "20"))):
        step()
        time.sleep(float(os.environ.get("STEP", "0.05")) * (4 if kind == "is_slow" and rank == odd else 1))
    if hasattr(plants_of_all, kind):
        return getattr(plants_of_all, kind)(rank, odd, step)
    if rank == odd and kind != "none":
        (getattr(plants_of_one, kind, None) or getattr(plants_of_pauses, kind))()
    end = os.environ.get("END_OF_TRAINING")
    steps = 0
    while not is_seen_by_a_rank(end) if end else steps < 90:
        step()
        steps += 1
        time.sleep(0.2)


if kind in plants_of_all.BEFORE:
    getattr(plants_of_all, kind)(rank, odd)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
train()
if rank == 0:
    sys.stdout.write("trained\n")
sys.stdout.flush()
# PyTorch 2.15 aborts now and then while Python ends on a loaded machine.
os._exit(0)
