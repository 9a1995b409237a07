#!/usr/bin/env python3
"""From exec of srun to the last worker in main(): srun starts all workers, or on each node one ddprun that does. The
nodes are those of a slurmlab started here, and share this machine's processors and its disk ($BENCH_DISK, default
/var/tmp); the last row's ledger lies in memory, so that what keeping it on a disk costs is seen. Needs root and
Slurm."""
import os
import tempfile
import time

from report import collect, main
from subjects import DDPRUN, Lab, note
from workplace import finish, folder, start, times, tool

ROWS = [(1, 8, []), (1, 64, []), (4, 8, []), (4, 8, ["--ledger=memory"])]  # nodes, workers on each, options of ddprun


def one_start(name, lab, nodes, workers, options):
    where = folder()
    # 100 ms are enough here: only the moments of entering main() count.
    worker = tool("enter", where, 100)
    # srun alone starts each worker as a task. With ddprun there is one task on each node.
    tasks = [f"--ntasks={nodes * workers}", "--overcommit", *worker] if name == "srun" else [
        "--ntasks-per-node=1", DDPRUN, f"--nproc-per-node={workers}", *options, "--no-python", *worker]
    timed = tool("timed", where / "launcher")
    # Under srun the ledger is a folder in the working directory, so cwd decides where it lies.
    with tempfile.TemporaryDirectory(prefix="bench-ledger-", dir=os.environ.get("BENCH_DISK", "/var/tmp")) as disk:
        step = start(lab.command("run", *timed, "srun", "--mpi=none", f"--nodes={nodes}", *tasks), cwd=disk)
        code = finish(step, 60)
    entered = times(where, "in.*")
    if code or len(entered) != nodes * workers:
        raise RuntimeError(f"exit code {code}, {len(entered)} of {nodes * workers} workers started")
    time.sleep(0.5)  # Slurm still cleans up the step, and the next start would wait for it
    return (max(entered) - times(where, "launcher")[0]) / 1e6


def measure(options):
    names = [name for name in ("srun", "ddprun") if name in options.subjects]
    lab, rows = Lab("bench", "10.95.0"), []
    if not lab.up(max(nodes for nodes, _, _ in ROWS)):
        note("starts by srun left out: they need root and slurm-wlm")
        return []
    try:
        for shape in ROWS:
            nodes, workers, extra = shape
            what = " ".join([f"{nodes} x {workers} workers by srun", *extra, "(ms)"])
            rows += collect(what, names, options.repeats, lambda name: one_start(name, lab, *shape), peer="srun")
    finally:
        lab.down()
    return rows


if __name__ == "__main__":
    main(measure)
