"""Plants a hang, or a pause that is none, in a small DDP training: plants.py KIND [RANK].

Trains with small steps, and from step 20 on the rank (default 1) does what KIND says. A pause ends after SECONDS
(default 25); then the training goes on for thirty steps, six seconds.
"""
import os
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist

kind, odd = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
rank, seconds = int(os.environ["RANK"]), float(os.environ.get("SECONDS_OF_PAUSE", 25))


# ---- hangs

def sleeps():
    time.sleep(10000)


def spins():
    while True:
        pass


def computes():
    x = torch.ones(300, 300)
    while True:
        x = (x @ x).clamp(0, 1)


def reads_fifo():
    path = "/tmp/plant-%d.fifo" % os.getpid()
    os.mkfifo(path)
    with open(path) as file:
        os.unlink(path)
        file.read()


def reads_pipe():
    ends = os.pipe()
    os.read(ends[0], 1)


def waits_for_child():
    subprocess.run(["sleep", "10000"], check=True)


def waits_for_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def stops():
    os.kill(os.getpid(), signal.SIGSTOP)


def waits_for_thread():
    thread = threading.Thread(target=sleeps)
    thread.start()
    thread.join()


def gil_held():
    import ctypes
    ctypes.PyDLL(None).sleep(10000)


def reads_socket():
    import socket
    pair = socket.socketpair()
    pair[0].recv(1)


def waits_for_loader_child():
    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            time.sleep(10000)

    for _ in torch.utils.data.DataLoader(Slow(), num_workers=1):
        pass


# ---- pauses

def evaluates():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(10000))


def saves():
    with open("/tmp/plant-%d.save" % os.getpid(), "wb") as file:
        os.unlink(file.name)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            file.seek(0)
            file.write(b"x" * (8 << 20))


def pauses():
    time.sleep(seconds)


if kind == "no_init" and rank == odd:
    sleeps()
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step():
    optimizer.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()


def train():
    for i in range(20):
        step()
        time.sleep(float(os.environ.get("STEP", "0.05")))
    if kind == "mismatch":
        return dist.barrier() if rank == odd else dist.all_reduce(torch.ones(1 << 20))
    if kind == "new_group":
        if rank == odd:
            dist.all_reduce(torch.ones(4))
        else:
            dist.new_group()
        return
    if rank == odd and kind != "none":
        globals()[kind]()
    for i in range(30):
        step()
        time.sleep(0.2)


train()
if rank == 0:
    sys.stdout.write("trained\n")
sys.stdout.flush()
# PyTorch 2.15 aborts now and then while Python ends on a loaded machine.
os._exit(0)
