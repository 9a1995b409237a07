"""Plays a worker whose collectives are NCCL's: nothing of them is seen from outside, and NCCL's RAS (ras_double) knows
the calls. It makes a call each 50 ms, for `steps` of them. Then $fault happens to rank 1, and the others wait for it.

    nccl_worker.py RAS_DOUBLE FOLDER [VERSION [MODE]]
"""
import os
import signal
import subprocess
import sys
import time

double, folder = sys.argv[1:3]
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
fault, steps = os.environ.get("fault", "none"), int(os.environ.get("steps", "40"))
place = f"{folder}/rank_{rank}"


def launch(count):
    with open(place + ".new", "w") as file:
        file.write(f"{os.getpid()} {count}\n")
    os.rename(place + ".new", place)


def all_reduce(count):
    launch(count)
    while not os.path.exists(folder + "/go_on"):
        time.sleep(0.05)


def evaluate():
    while not os.path.exists(folder + "/go_on"):
        time.sleep(0.05)


def stops():
    os.kill(os.getpid(), signal.SIGSTOP)


launch(0)
if rank == 0:
    subprocess.Popen([double, folder, str(ranks)] + sys.argv[3:])
for step in range(1, steps + 1):
    launch(step)
    time.sleep(0.05)
if rank == 1 and fault in ("behind", "stopped"):
    evaluate() if fault == "behind" else stops()
all_reduce(steps + (fault != "none"))
