#!/usr/bin/env python3
"""Scaling: a training step of 1, 2 and 4 ranks on this host beside PyTorch's DistributedDataParallel, which runs the
same network. Each rank's backward keeps a core busy for 100 ms of wall time and yields 13 MB of gradients; what a step
takes more than that is communication which was not hidden. Needs $PT_PYTHON, and the target trainer_tool."""
import json
import os
from pathlib import Path

from report import collect, main
from subjects import PYTHON, command, note
from trainer import OVERLAP, TOOL
from workplace import finish, folder, start

WORLDS = [1, 2, 4]


def one_step(name, world):
    where = folder()
    (where / "worker.py").write_text(OVERLAP)
    launcher = "ddprun" if name == "ddprun" else "torchrun"
    worker = [TOOL, "overlap"] if name == "ddprun" else [PYTHON, where / "worker.py"]
    env = os.environ | {"GLOO_SOCKET_IFNAME": "lo"}
    process = start(command(launcher, world, [*worker, where / "figures"]), env=env)
    if code := finish(process, 90):
        raise RuntimeError(f"exit code {code}")
    return json.loads((where / "figures").read_text())["overlapped"]


def measure(options):
    if not Path(TOOL).exists():
        note(f"no {TOOL}: build the target trainer_tool")
        return []
    launchers = {"PyTorch DDP": "torchrun", "ddprun": "ddprun"}
    names = [name for name, launcher in launchers.items() if launcher in options.subjects]
    rows = []
    for world in WORLDS:
        rows += collect(f"scaling, {world} rank{'s' if world > 1 else ''} (ms a step)", names, options.repeats,
                        lambda name: one_step(name, world), peer="PyTorch DDP")
    return rows


if __name__ == "__main__":
    main(measure)
