#!/usr/bin/env python3
"""What a user feels of a restart: an unmodified DDP script, from the crash of a rank to the first resumed step.

Four Gloo ranks ($RANKS), a snapshot after each step. Rank 1 kills itself in each generation but the last. Subjects: torchrun, and
ddprun with cold and with warm starts. $PT_PYTHON is a Python with torch. Also the first step of a job from the
launcher's exec, and the memory (PSS) of all processes of the node after 50 steps.
"""
import json
import os
import re
import statistics
import sys
from pathlib import Path

from report import Row, main
from subjects import note
from workplace import descendants, finish, folder, start

RANKS = int(os.environ.get("RANKS", "4"))
PYTHON = os.environ.get("PT_PYTHON", sys.executable)
ROOT = Path(__file__).resolve().parents[2]
DDPRUN = os.environ.get("DDPRUN", str(ROOT / "build/bin/ddprun"))

SCRIPT = r"""
import json, os, sys, time
born = time.time()
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

folder, crashes = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo")
rank, generation = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
optimizer, first = torch.optim.AdamW(model.parameters()), 0
if os.path.exists(folder + "/snapshot.pt"):
    saved = torch.load(folder + "/snapshot.pt", weights_only=True)
    model.load_state_dict(saved["model"]), optimizer.load_state_dict(saved["optimizer"])
    first = saved["step"] + 1
parallel = DistributedDataParallel(model)
last = first + (50 if generation in (0, crashes) else 5)
for step in range(first, last):
    optimizer.zero_grad()
    parallel(torch.ones(32, 64) * (rank + 1)).square().mean().backward()
    optimizer.step()
    if rank == 0:
        with open(folder + "/steps", "a") as file:
            file.write(json.dumps([generation, step, time.time()]) + "\n")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, folder + "/new.pt")
        os.replace(folder + "/new.pt", folder + "/snapshot.pt")
    dist.barrier()
if generation < crashes and rank == 1:
    # A generation that fails within 10 s says nothing about jobs that run for weeks. In the first one there is time for
    # what is prepared while it trains.
    time.sleep(max(0, (30 if generation == 0 else 11) - (time.time() - born)))
    with open(folder + "/crashes", "a") as file:
        file.write(json.dumps([generation, time.time()]) + "\n")
    os.kill(os.getpid(), 9)
if generation < crashes:
    time.sleep(60)
if rank == 0:
    open(folder + "/done", "w").close()
    while not os.path.exists(folder + "/measured"):
        time.sleep(0.02)
dist.barrier()
"""


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def pss(pid):
    """The memory of a process and all below it, shared pages divided (MB)."""
    total = 0
    for each in [pid, *descendants(pid)]:
        try:
            total += int(re.search(r"^Pss: +(\d+)", Path(f"/proc/{each}/smaps_rollup").read_text(), re.M)[1])
        except (OSError, TypeError):
            pass
    return total / 1024


def command(name, crashes):
    script = ["--nproc-per-node", str(RANKS), "--max-restarts", str(crashes)]
    if name == "torchrun":
        return [PYTHON, "-m", "torch.distributed.run", "--standalone", "--monitor-interval", "0.1", *script]
    warm = {"ddprun cold": "off", "ddprun warm": "auto", "ddprun warm from the start": "always"}[name]
    return [DDPRUN, "--standalone", "--crash-loop", "1000", f"--warm={warm}", "--python", PYTHON, *script]


def play(name, crashes):
    """The gaps of all restarts, the time to the first step, and the memory."""
    import time

    where = folder()
    (where / "train.py").write_text(SCRIPT)
    begun = time.time()
    process = start([*command(name, crashes), where / "train.py", where, crashes])
    deadline = time.monotonic() + 120 + 30 * crashes
    while not (where / "done").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    memory = pss(process.pid)
    (where / "measured").touch()
    code = finish(process, 60)
    steps, crashed = lines(where / "steps"), lines(where / "crashes")
    if code or len(crashed) != crashes:
        raise RuntimeError(f"exit code {code}, {len(crashed)} of {crashes} crashes")
    gaps = []
    for generation, at in crashed:
        gaps.append(min(when for which, _, when in steps if which == generation + 1) - at)
    return gaps, steps[0][2] - begun, memory


def measure(options):
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # else some of torchrun's restarts fail
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    os.environ["XDG_CACHE_HOME"] = str(folder())  # what jobs remember for the next one
    rows = {}
    names = ["torchrun", "ddprun cold", "ddprun warm", "ddprun warm from the start"]
    for name in [each for each in names if options.subjects is None or any(s in each for s in options.subjects)]:
        try:
            gaps, first, memory = play(name, options.repeats)
        except RuntimeError as problem:
            note(f"{name}: {problem}")
            continue
        note(f"{name}: gaps {[round(gap, 3) for gap in gaps]}, median {statistics.median(gaps):.3f}")
        for what, values in (("crash to first resumed step (s)", gaps), ("first step of the job (s)", [first]),
                             ("memory of all processes, last generation (MB)", [memory])):
            rows.setdefault(what, []).append(Row(what, name, values, "ddprun cold"))
    return [row for each in rows.values() for row in each]


if __name__ == "__main__":
    main(measure)
