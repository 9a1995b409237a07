#!/usr/bin/env python3
"""An unmodified PyTorch script: every rank all-reduces its number in each step and prints the sum at the end.

--fail-once DIR    rank --crash-rank exits with code 3 at the first step of its first run (a file in DIR remembers that)
--crash-at N       rank --crash-rank exits with code 3 before step N, in the first generation only
"""
import argparse
import os
import sys
import time

import torch
import torch.distributed as dist


def crash_once(folder):
    """True at the first call, also over several processes: O_EXCL lets only one of them create the file."""
    try:
        os.close(os.open(os.path.join(folder, "failed_once"), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--step-time", type=float, default=0.0, help="seconds to sleep in each step")
    parser.add_argument("--fail-once", metavar="DIR")
    parser.add_argument("--crash-at", type=int, metavar="N", default=-1)
    parser.add_argument("--crash-rank", type=int, default=0)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    generation = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    value = torch.zeros(1)
    for step in range(args.steps):
        if rank == args.crash_rank:
            planned = generation == 0 and step == args.crash_at
            if planned or (args.fail_once and crash_once(args.fail_once)):
                print(f"rank {rank} crashes on purpose at step {step}", file=sys.stderr, flush=True)
                os._exit(3)
        time.sleep(args.step_time)
        value = torch.tensor([float(rank)])
        dist.all_reduce(value)
    print(f"RESULT rank={rank} world={world} restarts={generation} sum={value.item():g}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
