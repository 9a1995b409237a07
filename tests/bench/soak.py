#!/usr/bin/env python3
"""Soak: a real training for minutes or hours under random faults, and what remains of it.

Three nodes train with examples/train (--pytorch: examples/python/ddp_resume.py). Workers are killed, crash and freeze;
ddprun is killed and frozen, whole nodes are lost and replaced, and as root a node's network is cut. At the end the job
is asked to stop. Then: the weights have the same bits as those of an undisturbed run to the same step; no ddprun and no
keeper that lived through many restarts has grown in memory or descriptors; nothing is left. It prints restarts and
goodput, the share of the time that went into steps which counted.

    tests/bench/soak.py --minutes 60 --seed 4711
    tests/bench/soak.py --pytorch --python build/torch-venv/bin/python

The same seed draws the same faults; when they come depends on the machine. Exit code: 0 if nothing was found, 1 if
something was, 77 if there is no torch for --pytorch.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from soak_job import ROOT, Hosts, Job, PyTorch, Train
from soak_rules import Plan, Watched, files_complaint, goodput

CALM = 10  # seconds of undisturbed training, to which the rest is compared
PATIENCE = 180  # seconds within which training must go on after a fault, also on a busy machine


class Soak:
    def __init__(self, job, plan, minutes):
        self.job, self.plan, self.end = job, plan, minutes * 60
        self.watched = {}  # process id: Watched
        self.faults = {}  # name: how often
        self.looked = 0.0

    def since(self):
        return time.monotonic() - self.begun

    def look(self):
        """Once a second: memory and descriptors of each ddprun and keeper."""
        if time.monotonic() - self.looked < 1:
            return
        self.looked = time.monotonic()
        restarts = self.job.restarts()
        ours = [process.pid for process in self.job.nodes]
        for pid, (name, parent) in self.job.processes().items():
            if pid not in ours and name != "job-keeper":
                continue
            title = self.job.names.get(pid) or f"keeper (pid {pid}) of {self.job.names.get(parent, 'a lost ddprun')}"
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
                memory = sum(int(re.search(rf"^{kind}: +(\d+)", text, re.M)[1]) for kind in ("Anonymous", "Swap"))
                self.watched.setdefault(pid, Watched(title)).add(restarts, memory, len(os.listdir(f"/proc/{pid}/fd")))
            except (OSError, TypeError):
                pass  # it has just ended

    def trains_for(self, seconds):
        """Waits until the job has trained for so long; False if it does not go on."""
        job, seen, trained = self.job, self.job.training.progress(), 0.0
        last = heard = time.monotonic()
        while trained < seconds:
            time.sleep(0.05)
            job.mend()
            self.look()
            now, progress = time.monotonic(), job.training.progress()
            if progress != seen:
                # A restart shows as a long pause, which is no training.
                trained += min(now - last, 1.0)
                seen, last, heard = progress, now, now
            if now - heard > PATIENCE:
                job.problems.append(f"no snapshot for {PATIENCE} s, after {self.faults}")
                return False
        return True

    def calm(self):
        """The rate of undisturbed training, in steps a second."""
        if not self.trains_for(1):
            return 0
        first, begun = self.job.training.step(), time.monotonic()
        if not self.trains_for(CALM):
            return 0
        between = time.monotonic() - begun
        return (self.job.training.step() - first) / between

    def run(self):
        self.begun = time.monotonic()
        for node in range(len(self.job.nodes)):
            self.job.start(node)
        rate, files = self.calm(), self.job.files()
        first, disturbed = self.job.training.step(), time.monotonic()
        # Longer if no process has lived through enough restarts yet: then nothing could be said about growth.
        while not self.job.problems and (self.since() < self.end or not self.grown() and self.since() < 2 * self.end):
            name, node, seconds = self.plan.fault(self.since())
            self.faults[name] = self.faults.get(name, 0) + 1
            print(f"{self.since():7.1f} s: {name}, node {node}", flush=True)
            self.job.strike(name, node, seconds)
            self.trains_for(self.plan.pause())
        seconds = time.monotonic() - disturbed
        restarts, lost = self.job.restarts(), self.faults.get("kill a whole node", 0)
        self.job.problems += filter(None, [watched.complaint() for watched in self.watched.values()])
        self.job.problems += filter(None, [files_complaint(files, self.job.files(), restarts, lost)])
        codes = self.job.stop(PATIENCE)
        if any(code not in (0, 143) for code in codes):
            self.job.problems.append(f"asked to stop, the nodes ended with {codes}")
        steps = self.job.training.step()
        return {"minutes": round(self.since() / 60, 1), "steps": steps, "restarts": restarts,
                "ddprun_replaced": self.job.replaced, "faults": self.faults, "calm_steps_per_second": round(rate, 1),
                "goodput": round(goodput(steps - first, seconds, rate), 3), "grown": self.grown()}

    def grown(self):
        """Of the process that was watched longest: restarts, KiB and descriptors in between."""
        known = [(watched.growth(), watched.name) for watched in self.watched.values() if watched.growth()]
        if not known:
            return None
        (restarts, memory, descriptors), name = max(known)
        return {"process": name, "restarts": restarts, "memory_kib": memory, "descriptors": descriptors}


def weights(job, steps, snapshots):
    """The result of a job that trains to this step, or has trained already, in a folder or file of snapshots."""
    training = job.training.reference(snapshots, steps)
    words = [job.ddprun, "--standalone", f"--nproc-per-node={len(job.nodes)}", *training]
    run = subprocess.run(list(map(str, words)), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                         env=job.environment(0) | {"GLOO_SOCKET_IFNAME": "lo"})
    found = set(job.training.result.findall(run.stdout + run.stderr))
    if run.returncode or len(found) != 1:
        job.problems.append(f"training to step {steps} ended with {run.returncode} and {sorted(found)}: "
                            f"{run.stderr[-500:]}")
        return ""
    return found.pop()


def compare(job, steps):
    """The same bits as an undisturbed run?"""
    disturbed = weights(job, steps, job.training.snapshots)
    calm = weights(job, steps, job.folder / "calm")
    if disturbed != calm:
        job.problems.append(f"after {steps} steps the job has {disturbed}, an undisturbed run {calm}")
    return calm


def look_at_what_is_left(job):
    end = time.monotonic() + 30
    while (living := job.processes()) and time.monotonic() < end:
        time.sleep(0.05)
    if living:
        job.problems.append(f"left: {living}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pytorch", action="store_true", help="train with PyTorch")
    parser.add_argument("--python", default=os.environ.get("PT_PYTHON", "/usr/bin/python3"), help="one with torch")
    parser.add_argument("--json", metavar="FILE", help="the summary, for programs")
    chosen = parser.parse_args()
    binaries = Path(os.environ.get("DDPRUN_BIN", ROOT / "build" / "bin")).resolve()
    # The link's own name: a virtual environment is found by it.
    python = Path(os.path.abspath(chosen.python))
    if chosen.pytorch and subprocess.run([python, "-c", "import torch.distributed"], capture_output=True).returncode:
        print(f"skipped: {python} has no torch")
        sys.exit(77)
    folder = Path(tempfile.mkdtemp(prefix="ddprun-soak-", dir=os.environ.get("BENCH_DISK", "/var/tmp")))
    hosts = Hosts()
    training = PyTorch(python, folder) if chosen.pytorch else Train(binaries, folder)
    job = Job(binaries, folder, training, hosts)
    where = "hosts" if hosts.real else "loopback"
    print(f"seed {chosen.seed}, {chosen.minutes:g} minutes, {where}, {folder}", flush=True)
    try:
        found = Soak(job, Plan(random.Random(chosen.seed), hosts.real), chosen.minutes).run()
        look_at_what_is_left(job)
        if not job.problems:
            found["weights"] = compare(job, found["steps"])
        found["problems"] = job.problems
    finally:
        job.clear()
        hosts.remove()
    print(json.dumps(found, indent=1))
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(found))
    if job.problems:
        print(*job.problems, sep="\n", file=sys.stderr)
        print(job.log.read_text(errors="replace")[-5000:], file=sys.stderr)
        sys.exit(f"the soak of seed {chosen.seed} has found something; its files are in {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
