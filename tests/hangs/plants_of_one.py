"""Hangs of one rank, while the others wait for it in a collective: each function never returns."""
import asyncio
import concurrent.futures
import fcntl
import gc
import multiprocessing
import os
import queue
import re
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time

import torch
import torch.distributed as dist


def temporary_name():
    return tempfile.mktemp(prefix="plant-")


# ---- it sleeps

def sleeps():
    time.sleep(10000)


def gil_held():
    import ctypes
    ctypes.PyDLL(None).sleep(10000)


def in_forward():
    class Sleeps(torch.nn.Module):
        def forward(self, x):
            time.sleep(10000)

    torch.nn.Sequential(torch.nn.Linear(4, 4), Sleeps())(torch.ones(1, 4))


def in_backward_hook():
    x = torch.ones(4, requires_grad=True)
    x.register_hook(lambda gradient: time.sleep(10000))
    x.sum().backward()


def in_dataset():
    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            time.sleep(10000)

    for _ in torch.utils.data.DataLoader(Slow()):
        pass


def in_pickling():
    class Odd:
        def __reduce__(self):
            time.sleep(10000)

    dist.all_gather_object([None] * dist.get_world_size(), Odd())


def looks_for_file():
    while not os.path.exists("/tmp/plant-that-never-comes"):
        time.sleep(0.1)


def looks_for_key():
    store = dist.distributed_c10d._get_default_store()
    while not store.check(["plant that never comes"]):
        time.sleep(0.01)


# ---- it computes

def spins():
    while True:
        pass


def computes():
    x = torch.ones(300, 300)
    while True:
        x = (x @ x).clamp(0, 1)


def expression():
    re.match(r"(a+)+$", "a" * 60 + "b")


def collects_garbage():
    kept = [[i] for i in range(200000)]
    while kept:
        gc.collect()


# ---- it reads or writes

def reads_fifo():
    path = temporary_name()
    os.mkfifo(path)
    with open(path) as file:
        file.read()


def reads_pipe():
    ends = os.pipe()
    os.read(ends[0], 1)


def reads_socket():
    pair = socket.socketpair()
    pair[0].recv(1)


def reads_answer():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    client.sendall(b"GET / HTTP/1.0\r\n\r\n")
    client.recv(1)


def reads_output_of_child():
    subprocess.run(["sleep", "10000"], capture_output=True)


def full_pipe():
    ends = os.pipe()
    while True:
        os.write(ends[1], b"x" * 65536)


# ---- it waits for another process

def waits_for_child():
    subprocess.run(["sleep", "10000"], check=True)


def waits_for_frozen_child():
    child = subprocess.Popen(["sleep", "1"])
    child.send_signal(signal.SIGSTOP)
    child.wait()


def waits_for_loader_child():
    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            time.sleep(10000)

    for _ in torch.utils.data.DataLoader(Slow(), num_workers=1):
        pass


def waits_for_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(time.sleep, [10000, 10000])


def file_locked():
    path = temporary_name()
    child = subprocess.Popen(["flock", path, "sleep", "10000"])
    time.sleep(1)
    with open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    child.kill()


# A parent of a child that has not begun its program sleeps uninterruptibly.
def in_the_kernel():
    path = temporary_name()
    os.mkfifo(path)
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, path, os.O_RDONLY, 0)])


# ---- it waits for another thread, or for an event

def waits_for_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def two_locks():
    first, second = threading.Lock(), threading.Lock()

    def other():
        with second:
            time.sleep(0.5)
            with first:
                pass

    thread = threading.Thread(target=other)
    thread.start()
    with first:
        time.sleep(0.5)
        with second:
            pass


def waits_for_thread():
    thread = threading.Thread(target=sleeps)
    thread.start()
    thread.join()


def waits_for_event():
    threading.Event().wait()


def waits_for_queue():
    queue.Queue().get()


def waits_for_future():
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        threads.submit(time.sleep, 10000).result()


def waits_for_loop():
    asyncio.new_event_loop().run_forever()


def waits_for_nothing():
    select.select([], [], [])


def waits_for_caller():
    socket.create_server(("127.0.0.1", 0)).accept()


def waits_for_signal():
    signal.pause()


def stops():
    os.kill(os.getpid(), signal.SIGSTOP)
