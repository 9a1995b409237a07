#!/usr/bin/env python3
"""Four agents on this machine, 2 workers each: time from launching all to the last worker in main(), then, after one
worker has failed, from just before its exit to the last of the 8 new ones in main(). ddprun writes its ledger to a
folder on a local disk ($BENCH_DISK, default /var/tmp), and its nodes prove their identity by a secret in that folder.
What either costs is printed apart: the same once more with a ledger in memory (and a secret file), and once more
without identity, subtracted."""
import os
import shutil
import tempfile

from report import collect, main
from subjects import elastic, present
from workplace import finish, folder, free_port, start, times, tool

AGENTS, WORKERS = 4, 2


def agent(name, rank, port, worker, nodes=AGENTS, options=()):
    """The command line of one of the agents."""
    return [elastic(name), "--nnodes", nodes, "--node-rank", rank, "--nproc-per-node", WORKERS, "--max-restarts", "1",
            "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", f"bench{port}",
            "--local-addr", "127.0.0.1", *options, "--no-python", *worker]


def times_of_job(name, options=()):
    where, world = folder(), AGENTS * WORKERS
    # One small program starts all agents and puts the index for "%r", so no agent waits for Python to start the others.
    agents = tool("floor", AGENTS, *agent(name, "%r", free_port(), tool("failonce", where, world), options=options))
    code = finish(start(tool("timed", where / "launcher") + agents), 120)
    first, again = times(where, "in.*"), times(where, "again.*")
    if code or len(first) != world or len(again) != world:
        raise RuntimeError(f"exit code {code}, {len(first)} workers started, {len(again)} of {world} restarted")
    return {"start (ms)": (max(first) - times(where, "launcher")[0]) / 1e6,
            "restart (ms)": (max(again) - times(where, "failed")[0]) / 1e6}


def one_job(name):
    if name != "ddprun":
        return times_of_job(name)
    disk = tempfile.mkdtemp(prefix="bench-ledger-", dir=os.environ.get("BENCH_DISK", "/var/tmp"))
    secret = os.path.join(disk, "secret")
    # ddprun refuses a secret that others can read.
    with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        file.write(os.urandom(32).hex())
    # Three jobs right after each other, so that the differences are not those of a busier minute.
    try:
        found = times_of_job(name, [f"--ledger=directory:{disk}/one"])
        unproved = times_of_job(name, [f"--ledger=directory:{disk}/two", "--identity=none"])
        memory = times_of_job(name, ["--ledger=memory", f"--secret-file={secret}"])
    finally:
        shutil.rmtree(disk, ignore_errors=True)
    # The share of the ledger is the time with it minus the time without it; the same for identity.
    for share, without in (("ledger's", memory), ("identity's", unproved)):
        found |= {key.replace("(ms)", f"{share} share (ms)"): found[key] - without[key] for key in without}
    return found


def measure(options):
    names = present(options.subjects, ["torchrun", "ddprun"])
    return collect(f"{AGENTS} agents x {WORKERS} workers,", names, options.repeats, one_job)


if __name__ == "__main__":
    main(measure)
