"""A DDP script as tutorials have it: a DataLoader with worker processes, and a handler that sets a flag. All ranks
agree on the flag after a step; then rank 0 saves. Arguments: folder, how the loaders are started, save or go_on."""
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset


def main():
    folder, context, then = sys.argv[1:]
    asked = []
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: asked.append(number))
    dist.init_process_group("gloo")
    rank, steps = dist.get_rank(), 0
    data = TensorDataset(torch.arange(800_000.0))
    for (x,) in DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context=context):
        total = torch.tensor([x.sum().item(), float(len(asked))])
        dist.all_reduce(total)
        steps += 1
        if steps == 3:
            open(f"{folder}/up.{rank}", "w").close()
        if total[1] > 0:
            break
    if then == "go_on":  # the loaders still work
        asked.clear()
        for _, (x,) in zip(range(20), DataLoader(data, num_workers=2, multiprocessing_context=context)):
            dist.all_reduce(x)
    torch.save(steps, f"{folder}/saved.{rank}")
    dist.barrier()
    print("left in good order", flush=True)
    os._exit(0)  # PyTorch 2.15 may abort while the interpreter ends (pytorch issue 190489)


if __name__ == "__main__":
    main()
