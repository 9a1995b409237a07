"""A two-worker job that is restarted again and again: crash_each_generation.py LAST.

In every generation both ranks meet and add up; up to generation LAST one of them then dies, rank 0 and rank 1 in turn. One
rank comes late to each meeting, so that the other would find the addresses of the dead if the store were not empty.
"""
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

rank, generation = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if rank == generation % 2:
    time.sleep(0.2)  # the late one: what stood in the store before it comes is the other's, or stale
dist.init_process_group("gloo", timeout=timedelta(seconds=60))
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
assert total.item() == 3, total
print(f"generation {generation}: rank {rank} met", flush=True)
if generation < int(sys.argv[1]):
    dist.all_reduce(total)  # nobody dies before both have spoken
    if rank == generation // 2 % 2:
        os._exit(3)
    time.sleep(600)  # until it is stopped
dist.destroy_process_group()
os._exit(0)  # PyTorch 2.15 may abort while the interpreter ends (pytorch issue 190489)
