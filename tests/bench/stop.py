#!/usr/bin/env python3
"""The polite end: SIGTERM at the launcher of one node with 8 workers that die of it at once, until the launcher has
left."""
import signal
import time

from report import collect, main
from subjects import holding, present
from workplace import alive, kill

WORKERS = 8


def one_stop(name):
    launcher, pids = holding(name, WORKERS)
    # The start is over, and the launcher waits for its workers.
    time.sleep(0.2)
    begin = time.monotonic()
    launcher.send_signal(signal.SIGTERM)
    launcher.wait(60)
    took = (time.monotonic() - begin) * 1e3
    # A launcher that leaves before its workers have ended would look fast.
    left = [pid for pid in pids if alive(pid)]
    kill(left)
    if left:
        raise RuntimeError(f"{len(left)} workers live on")
    return took


def measure(options):
    names = present(options.subjects, ["mpirun", "torchrun", "ddprun"])
    return collect(f"SIGTERM to the end, {WORKERS} workers, 1 node (ms)", names, options.repeats, one_stop)


if __name__ == "__main__":
    main(measure)
