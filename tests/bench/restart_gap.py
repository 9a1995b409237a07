#!/usr/bin/env python3
"""What a user feels of a restart: an unmodified DDP script, from the crash of a rank to the first resumed step, in
phases.

Four Gloo ranks ($RANKS), a snapshot after each step. $DEVICE says where the model is: "cpu", or "cuda", then all ranks
share one GPU. Rank 1 kills itself in each generation but the last. Subjects: torchrun, and ddprun with cold and with
warm starts. $PT_PYTHON is a Python with torch. Also the first step of a job from the launcher's exec, and the memory
(PSS) of all processes of the node after 50 steps.
"""
import json
import os
import re
import time
from pathlib import Path

from report import collect, main
from subjects import DDPRUN, PYTHON
from workplace import descendants, finish, folder, start, wait_until

RANKS = int(os.environ.get("RANKS", "4"))
SUBJECTS = ["torchrun", "ddprun cold", "ddprun warm", "ddprun warm from the start"]
QUICK_SUBJECTS = ["torchrun", "ddprun warm"]
WARM = {"ddprun cold": "off", "ddprun warm": "auto", "ddprun warm from the start": "always"}
# What a rank has done when it notes the time: the ends of a restart's phases, in their order.
PHASES = ["script", "imports", "process group", "model", "first step"]

SCRIPT = r"""
import time
noted = {"script": time.time()}
import json, os, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

folder, crashes = sys.argv[1], int(sys.argv[2])
noted["imports"] = time.time()
dist.init_process_group("gloo")
noted["process group"] = time.time()
rank, generation = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
device = os.environ.get("DEVICE", "cpu")
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to(device)
optimizer, first = torch.optim.AdamW(model.parameters()), 0
if os.path.exists(folder + "/snapshot.pt"):
    saved = torch.load(folder + "/snapshot.pt", weights_only=True, map_location=device)
    model.load_state_dict(saved["model"]), optimizer.load_state_dict(saved["optimizer"])
    first = saved["step"] + 1
parallel = DistributedDataParallel(model)
noted["model"] = time.time()
progress = os.fdopen(int(os.environ["DDPRUN_PROGRESS_FD"]), "w", 1) if "DDPRUN_PROGRESS_FD" in os.environ else None
last = first + (50 if generation in (0, crashes) else 5)
for step in range(first, last):
    optimizer.zero_grad()
    parallel(torch.ones(32, 64, device=device) * (rank + 1)).square().mean().backward()
    optimizer.step()
    noted.setdefault("first step", time.time())
    if progress:
        print(f"step={step}", file=progress)
    if rank == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, folder + "/new.pt")
        os.replace(folder + "/new.pt", folder + "/snapshot.pt")
    dist.barrier()
with open(f"{folder}/noted.{generation}.{rank}.part", "w") as file:
    json.dump(noted, file)
os.rename(f"{folder}/noted.{generation}.{rank}.part", f"{folder}/noted.{generation}.{rank}")
if generation < crashes and rank == 1:
    # Until what is prepared while a job trains is there, which takes seconds of weeks.
    while not os.path.exists(folder + "/prepared"):
        time.sleep(0.02)
    with open(f"{folder}/crash.{generation}", "w") as file:
        json.dump(time.time(), file)
    os.kill(os.getpid(), 9)
if generation < crashes:
    time.sleep(60)
if rank == 0:
    open(folder + "/done", "w").close()
    while not os.path.exists(folder + "/measured"):
        time.sleep(0.02)
dist.barrier()
"""


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
    return [DDPRUN, "-v", "--standalone", "--crash-loop", "1000", f"--warm={WARM[name]}", "--python", PYTHON, *script]


def phases(where, generation):
    """The seconds from the crash of the generation before to its first resumed step, and where they went."""
    crashed = json.loads((where / f"crash.{generation - 1}").read_text())
    noted = [json.loads((where / f"noted.{generation}.{rank}").read_text()) for rank in range(RANKS)]
    # A phase ends when the last rank has ended it.
    ends = [crashed] + [max(one[phase] for one in noted) for phase in PHASES]
    found = {f"until {phase} (s)": after - before for phase, before, after in zip(PHASES, ends, ends[1:])}
    return found | {"crash to first resumed step (s)": ends[-1] - crashed}


def server_is_prepared(log, first_step):
    """Whether a warm job's server is there, with what the first steps have imported, too: nothing new in the log for
    some looks of ddprun at what the workers import. first_step: time.time() of the first step."""
    quiet = time.time() - max(first_step, log.stat().st_mtime)
    return b"a fork server for warm starts is ready" in log.read_bytes() and quiet > 4


def prepared(name, where):
    """Whether what is prepared while a job trains is there."""
    if WARM.get(name, "off") == "off":
        return True
    noted = where / "noted.0.1"
    return noted.exists() and server_is_prepared(where / "log", json.loads(noted.read_text())["first step"])


def play(name, crashes, where):
    """A job with so many crashes: what it took from its begin, and its memory at the end."""
    (where / "train.py").write_text(SCRIPT)
    begun = time.time()
    with open(where / "log", "wb") as log:
        process = start([*command(name, crashes), where / "train.py", where, crashes], stderr=log)
    over = lambda: process.poll() is not None
    wait_until(lambda: prepared(name, where) or over(), 120, 0.02)
    (where / "prepared").touch()
    wait_until(lambda: (where / "done").exists() or over(), 60 + 30 * crashes, 0.02)
    memory = pss(process.pid)
    (where / "measured").touch()
    code = finish(process, 60)
    crashed = len(list(where.glob("crash.*")))
    if code or crashed != crashes:
        raise RuntimeError(f"exit code {code}, {crashed} of {crashes} crashes")
    first = json.loads((where / "noted.0.0").read_text())["first step"] - begun
    return {"first step of the job (s)": first, "memory of all processes (MB)": memory}


def one_job(name):
    where = folder()
    found = play(name, 1, where)
    return phases(where, 1) | found


def measure(options):
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # else some of torchrun's restarts fail
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    os.environ["XDG_CACHE_HOME"] = str(folder())  # what jobs remember for the next one
    names = [each for each in (QUICK_SUBJECTS if options.quick else SUBJECTS) if each.split()[0] in options.subjects]
    return collect("restart gap,", names, options.repeats, one_job)


if __name__ == "__main__":
    main(measure)
