#!/usr/bin/env python3
"""System calls of ddprun and its keeper, counted by strace: a job of 1 and of 8 workers from exec to exit, what one
restart of 8 adds, and what a job and a restart cost more where others have left much in /tmp. The workers' own calls
do not count, that is, all from their exec on, nor what reads /sys, which depends on the machine's devices.

Timers and wake-ups vary by some calls, on a loaded machine by more than a hundred, so the least of several runs counts.
Where a few calls more are to be seen, only those that name the temporary folder count: they are the same in each run.
"""
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import limits

ROOT = Path(__file__).resolve().parents[2]
DDPRUN = Path(os.environ.get("DDPRUN_BIN", ROOT / "build" / "bin")) / "ddprun"
RUNS = 5
LEFT = 200
# A line of `strace -f`: process id, and a call that begins. A call that was interrupted ends in a line of its own.
BEGUN = re.compile(r"(\d+) +(\w+)\(")
EXEC = re.compile(r"(\d+) +(?:execve\(|<\.\.\. execve resumed>).*= 0$")


def count(trace, about=""):
    """The calls of a program and of what it forks, without those of the programs that they become. `about`: only calls
    whose line has this path, as name or as open file.
    """
    lines = trace.splitlines()
    program = lines[0].split()[0]  # its own exec is the first call
    became_another, calls = set(), 0
    for number, line in enumerate(lines):
        begun = BEGUN.match(line)
        if begun and begun[1] not in became_another and "/sys/" not in line and about in line:
            calls += 1
        done = EXEC.match(line)
        if done and not (number == 0 and done[1] == program):
            became_another.add(done[1])
    return calls


def leave(folder):
    """What other jobs of this user have left in the temporary folder: sockets of the libraries."""
    for number in range(LEFT):
        made = folder / f"pymp-{number:08}"
        made.mkdir()
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(os.path.relpath(made / "listener"))


def least(words, folder, left=False):
    """The fewest calls of some jobs, and the fewest about the temporary folder. `{}` in the words is a fresh folder for
    each. `left`: beside what others have left.
    """
    counts, about = [], []
    for _ in range(RUNS):
        fresh = Path(tempfile.mkdtemp(dir=folder))
        if left:
            leave(fresh)
        job = [str(DDPRUN), "--standalone", "--warm=off", *(word.replace("{}", str(fresh)) for word in words)]
        trace = fresh / "trace"
        done = subprocess.run(["strace", "-f", "-y", "-o", str(trace), *job], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(fresh), "TMPDIR": str(fresh),
                                   "OMP_NUM_THREADS": "1"})
        if done.returncode:
            sys.exit(f"FAILED: {' '.join(job)} ended with {done.returncode}: {done.stderr[-1000:]}")
        text = trace.read_text(errors="replace")
        counts.append(count(text))
        about.append(count(text, str(fresh)))
    return min(counts), min(about)


def main():
    try:
        able = subprocess.run(["strace", "-o", "/dev/null", "/usr/bin/true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        able = False
    if not able:
        print("skipped: no strace here, or it may not trace")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="ddprun-counts-") as name:
        folder = Path(name)
        tool = folder / "tool"
        # The workers of the benchmarks: with `failonce` the last of 8 fails once all run, and all succeed when they
        # run again.
        subprocess.run(["gcc", "-O1", "-o", tool, ROOT / "tests" / "bench" / "tool.c"], check=True)
        one, one_about = least(["--nproc-per-node=1", "/usr/bin/true"], folder)
        eight, _ = least(["--nproc-per-node=8", "/usr/bin/true"], folder)
        restart = ["--max-restarts=1", "--nproc-per-node=8", str(tool), "failonce", "{}", "8"]
        again, again_about = least(restart, folder)
        _, beside = least(["--nproc-per-node=1", "/usr/bin/true"], folder, left=True)
        _, again_beside = least(restart, folder, left=True)
    limits.check({"system_calls_1_worker": one, "system_calls_8_workers": eight,
                  "system_calls_restart_8": again - eight,
                  "system_calls_others_left": max(beside - one_about, again_beside - again_about)})


if __name__ == "__main__":
    main()
