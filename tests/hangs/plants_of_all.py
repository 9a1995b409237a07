"""Hangs in which more than one rank does something else than train. Each gets its rank, the odd one, and a step."""
import ctypes
import os
import socket
import sys
import threading
import time

import torch
import torch.distributed as dist

import plants_of_one

# Played before init_process_group().
BEFORE = ("no_init",)


def no_init(rank, odd):
    if rank == odd:
        plants_of_one.sleeps()


def train_on(step):
    while True:
        step()
        time.sleep(0.05)


# ---- one rank hangs, and something else goes on

# Each rank has a thread that writes a log.
def chatty(rank, odd, step):
    def writes():
        while True:
            os.write(1, b"all is well\n")
            time.sleep(0.2)

    threading.Thread(target=writes, daemon=True).start()
    if rank == odd:
        plants_of_one.sleeps()
    train_on(step)


# Each rank has a thread that computes.
def busy(rank, odd, step):
    def computes():
        while True:
            time.sleep(0.001)

    threading.Thread(target=computes, daemon=True).start()
    if rank == odd:
        plants_of_one.waits_for_event()
    train_on(step)


def two_ranks(rank, odd, step):
    if rank != 0:
        plants_of_one.sleeps()
    train_on(step)


def at_the_end(rank, odd, step):
    if rank == odd:
        threading.Thread(target=time.sleep, args=(10000,)).start()
        sys.exit()
    train_on(step)


# ---- the network: this rank gets nothing any more, also no acknowledgements

def no_network(rank, odd, step):
    if rank == odd:
        drop_all = (ctypes.c_uint16 * 4)(0x06, 0, 0, 0)  # struct sock_filter: return 0 bytes

        class Program(ctypes.Structure):
            _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

        program = Program(1, ctypes.addressof(drop_all))
        for name in os.listdir("/proc/self/fd"):
            try:
                attach_filter = 26
                with socket.socket(fileno=os.dup(int(name))) as each:
                    if each.family == socket.AF_INET:
                        each.setsockopt(socket.SOL_SOCKET, attach_filter, bytes(program))
            except OSError:
                pass  # not a socket
    train_on(step)


# ---- the calls differ

def mismatch(rank, odd, step):
    return dist.barrier() if rank == odd else dist.all_reduce(torch.ones(1 << 20))


# All wait at the same line.
def in_wait(rank, odd, step):
    if rank == odd:
        work = dist.barrier(async_op=True)
    else:
        work = dist.all_reduce(torch.ones(64), async_op=True)
    work.wait()


def new_group(rank, odd, step):
    if rank == odd:
        dist.all_reduce(torch.ones(4))
    else:
        dist.new_group()


def fewer_batches(rank, odd, step):
    for i in range(8 if rank == odd else 10):
        step()
    dist.barrier()


def receives(rank, odd, step):
    if rank == odd:
        dist.recv(torch.ones(4), src=0)
    dist.all_reduce(torch.ones(4))


def barrier_on_one(rank, odd, step):
    if rank == odd:
        dist.barrier()
    train_on(step)


def broadcasts(rank, odd, step):
    if rank == odd:
        dist.all_gather([torch.ones(4) for _ in range(dist.get_world_size())], torch.ones(4))
    else:
        dist.broadcast(torch.ones(4), src=odd)
    dist.barrier()


def subgroup(rank, odd, step):
    group = dist.new_group([0, 1])
    if rank == odd:
        dist.barrier(group)
    train_on(step)
