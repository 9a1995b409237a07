"""ddprun for Accelerate, whose training loop is the script's own: what all ranks agree on after a step.

    from ddprun.accelerate import newest_checkpoint, requests
    if path := newest_checkpoint("checkpoints"): accelerator.load_state(path)
    ...
        stop, snapshot = requests(accelerator)      # at the end of each step, on all ranks
        if stop or snapshot or step % 100 == 0:
            save_state(accelerator, f"checkpoints/checkpoint_{step}")
            ddprun.progress(step, snapshot=step)
        if stop: break                              # and do not export the model

`stop_requested()` is what this rank knows alone; the others may learn it a step later."""

from __future__ import annotations

import os
import shutil
from typing import Any

from . import stop_requested
from ._frameworks import agree_with_torch, begin_snapshot, newest_whole, wishes

__all__ = ["newest_checkpoint", "requests", "save_state", "stop_requested"]


def requests(accelerator: Any) -> tuple[bool, bool]:
    """Whether the job is to stop, and whether a snapshot is asked for. The same on all ranks, after the same step."""
    stop, snapshot = agree_with_torch(wishes(), accelerator.device)
    if stop or snapshot:
        begin_snapshot()
    return stop, snapshot


def save_state(accelerator: Any, folder: str) -> None:
    """accelerator.save_state(), so that the folder is there with all files or not at all."""
    part = folder + ".part"
    accelerator.save_state(part)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(part, folder)
    accelerator.wait_for_everyone()


def newest_checkpoint(folder: str) -> str | None:
    """The newest `checkpoint_N` in this folder that is complete; None: there is none. For accelerator.load_state()."""
    return newest_whole(folder, r"checkpoint_(\d+)")
