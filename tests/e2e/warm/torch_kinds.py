"""What a worker does with PyTorch, one kind for each word (warm_torch.sh)."""
import os
import pickle
import sys

import numpy
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor(index**2)


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def leave():
    """On a loaded machine PyTorch sometimes aborts at the end of Python, if its group has threads."""
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)


def load(method):
    loader = DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context=method)
    say([batch.tolist() for batch in loader])


def child(index, queue):
    queue.put((index * torch.ones(2)).sum().item())


def spawn():
    queue = mp.get_context("spawn").SimpleQueue()
    context = mp.spawn(child, (queue,), nprocs=2, join=False)
    say(sorted(queue.get() for _ in range(2)))
    while not context.join():
        pass


def train():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Linear(10, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(5):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 10) * (dist.get_rank() + 1)).square().mean()
        loss.backward()
        optimizer.step()
        say("rank", dist.get_rank(), "step", step, "loss %.9f" % loss.item())
    leave()


def seeds():
    """No two ranks draw the same numbers, unless the script asks for it."""
    dist.init_process_group("gloo")
    mine = [torch.rand(1).item(), numpy.random.rand(), float(mp.current_process().authkey[0])]
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, mine)
    say([len({each[i] for each in every}) == len(every) for i in range(2)])
    leave()


def fails():
    torch.ones(2, 3) @ torch.ones(2, 3)


KINDS = {
    "train": train,
    "seeds": seeds,
    "threads": lambda: [torch.set_num_threads(2), say((torch.ones(400, 400) @ torch.ones(400, 400)).sum().item())],
    "load_fork": lambda: load("fork"),
    "load_spawn": lambda: load("spawn"),
    "load_forkserver": lambda: load("forkserver"),
    "spawn": spawn,
    "cuda": lambda: say(torch.cuda.is_available(), getattr(torch._C, "_cuda_isInBadFork", lambda: None)()),
    "pickled": lambda: say(pickle.loads(pickle.dumps(torch.ones(3))), torch.__config__.parallel_info().count("\n")),
    "fails": fails,
    "killed": lambda: os.kill(os.getpid(), 11),
}

if __name__ == "__main__":
    KINDS[sys.argv[1]]()
