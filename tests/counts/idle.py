#!/usr/bin/env python3
"""What an idle ddprun needs while its workers sleep: how often it and its keeper wake up, a second, on the second of two
nodes, and alone with 8 workers; and the memory of the latter. A wake-up is a thread that has waited and goes on
(voluntary_ctxt_switches of proc(5)), so other work on the machine changes little."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import limits

ROOT = Path(__file__).resolve().parents[2]
DDPRUN = Path(os.environ.get("DDPRUN_BIN", ROOT / "build" / "bin")) / "ddprun"
START = 60  # seconds within which all run
SETTLED = 4  # seconds after which all that comes after a start is done (agent/node/program_lock.cc)
WATCHED = 10  # seconds
WORKER = ["sleep", "1000"]


def start(words, folder):
    return subprocess.Popen([DDPRUN, "--warm=off", *words, *WORKER], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                            env={"PATH": "/usr/bin:/bin", "HOME": folder, "TMPDIR": folder, "OMP_NUM_THREADS": "1"})


def children(pid):
    text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for child in text.split()]


def sleepers(pid):
    return sum(Path(f"/proc/{child}/comm").read_text() == "sleep\n" for child in children(pid))


def keeper_of(pid, workers):
    """The process whose children are so many workers."""
    return next((child for child in children(pid) if sleepers(child) == workers), None)


def wake_ups(pids):
    """{thread: how often it has waited}"""
    found = {}
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            lines = (thread / "status").read_text().splitlines()
            found[thread] = next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
    return found


def memory(pid):
    """KiB that are in memory, also of what it shares with its keeper."""
    return next(int(line.split()[1]) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
                if line.startswith("VmRSS:"))


def watch(jobs):
    """{name: wake-ups a second} of {name: (process, its workers)}, when they are idle."""
    end = time.monotonic() + START
    while not all(keeper_of(job.pid, workers) for job, workers in jobs.values()):
        if time.monotonic() > end or any(job.poll() is not None for job, _ in jobs.values()):
            sys.exit("FAILED: the jobs do not run")
        time.sleep(0.05)
    own = {name: (job.pid, keeper_of(job.pid, workers)) for name, (job, workers) in jobs.items()}
    time.sleep(SETTLED)
    begun, before = time.monotonic(), {name: wake_ups(pids) for name, pids in own.items()}
    time.sleep(WATCHED)
    seconds, after = time.monotonic() - begun, {name: wake_ups(pids) for name, pids in own.items()}
    # A thread that has come since counts from its begin.
    return {name: sum(count - before[name].get(thread, 0) for thread, count in after[name].items()) / seconds
            for name in own}


def main():
    with tempfile.TemporaryDirectory(prefix="ddprun-counts-") as folder, socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{port.getsockname()[1]}"
        port.close()
        node = ["--nnodes=2", f"--rdzv-endpoint={endpoint}", "--rdzv-id=idle", "--nproc-per-node=1"]
        jobs = {"leader": (start([*node, "--node-rank=0"], folder), 1),
                "member": (start([*node, "--node-rank=1"], folder), 1),
                "alone": (start(["--standalone", "--nproc-per-node=8"], folder), 8)}
        try:
            found = watch(jobs)
            resident = memory(jobs["alone"][0].pid)
        finally:
            for job, _ in jobs.values():
                job.send_signal(signal.SIGTERM)
            for job, _ in jobs.values():
                job.wait(60)
    limits.check({"wake_ups_member": found["member"], "wake_ups_alone": found["alone"], "memory_alone": resident})


if __name__ == "__main__":
    main()
