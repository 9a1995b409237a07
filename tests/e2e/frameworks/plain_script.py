"""A DDP loop as tutorials have it: a DataLoader with workers, a handler that sets a flag, a file that rank 0 writes
when any rank has been asked to end. Argument: steps."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from steps import begin_step

FILE = "plain/state.pt"


def main():
    asked = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    os.makedirs("plain", exist_ok=True)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = begin = 0
    if os.path.exists(FILE):
        state = torch.load(FILE)
        model.load_state_dict(state["model"])
        step = begin = state["step"]
    print(f"trains from step {step}", flush=True)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(800_000, 8)), batch_size=8,
                                       num_workers=2)
    for (x,) in data:
        time.sleep(0.05)
        begin_step(step + 1)
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step == begin + 5:
            print("has done 5 steps", flush=True)
        stop = torch.tensor(float(len(asked)))
        dist.all_reduce(stop)
        if stop > 0 or step == int(sys.argv[1]):
            break
    if rank == 0:
        torch.save({"model": model.state_dict(), "step": step}, FILE + ".part")
        os.replace(FILE + ".part", FILE)
    dist.barrier()
    if step == int(sys.argv[1]):
        print(f"finished at step {step}", flush=True)
    sys.stdout.flush()
    os._exit(0)  # PyTorch 2.15 may abort while the interpreter ends (pytorch issue 190489)


if __name__ == "__main__":
    main()
