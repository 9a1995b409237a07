"""What the hooks for Lightning, transformers and Accelerate have in common: which versions are known, how all ranks
agree, where the newest whole checkpoint is, and the end of the process after a stop. No dependencies of its own."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import re
import sys
import zipfile
from typing import Any, Callable

from . import snapshot_path, snapshot_requested, stop_requested

# Major and minor versions that were tried (tests/e2e/framework_stop.sh). Others may have other hooks.
KNOWN = {
    "lightning": {(2, 5), (2, 6)},
    "pytorch_lightning": {(2, 5), (2, 6)},
    "transformers": {(5, 24)},
    "accelerate": {(1, 11), (1, 15)},
}


def unknown_version(framework: str, version: str) -> str | None:
    """Why this version is left alone; None: it is known."""
    numbers = tuple(int(each) for each in re.findall(r"\d+", version)[:2])
    known = KNOWN[framework]
    if numbers in known:
        return None
    tried = ", ".join("%d.%d" % each for each in sorted(known))
    return f"{framework} {version} is not one of the versions that ddprun knows ({tried})"


def wishes() -> tuple[bool, bool]:
    """What this rank has been asked for: to stop, to write a snapshot. The others may learn it a step later."""
    return stop_requested(), snapshot_requested()


def begin_snapshot() -> None:
    """Takes the request away: the snapshot is being written now."""
    path = snapshot_path()
    if path and int(os.environ.get("LOCAL_RANK", "0")) == 0:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def agree_with_torch(wanted: tuple[bool, bool], device: Any) -> tuple[bool, bool]:
    """What any rank has been asked for. All ranks call it after the same step."""
    import torch
    import torch.distributed as dist
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return wanted
    flags = torch.tensor([float(each) for each in wanted], device=device)
    dist.all_reduce(flags, dist.ReduceOp.MAX)
    stop, snapshot = flags.tolist()
    return stop > 0, snapshot > 0


def end_process() -> None:
    """Ends the process as at its regular end, but without running one more line of the script: what it does after
    training, such as exporting the model, must not be done with one that is half trained."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(0)


def end_after(trainer: type, method: str, has_stopped: Callable[[Any], bool], around: Any = None) -> None:
    """Ends the process when this method of a trainer returns after a stop. Once for a class. `around` makes a context
    for the call, of its arguments."""
    original = getattr(trainer, method)
    if getattr(original, "_ddprun", False):
        return

    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with around(self, *args, **kwargs) if around else contextlib.nullcontext():
            result = original(self, *args, **kwargs)
        if has_stopped(self):
            end_process()
        return result

    run._ddprun = True  # type: ignore[attr-defined]
    setattr(trainer, method, run)


def is_whole(folder: str) -> bool:
    """Whether a checkpoint folder of transformers or Accelerate is complete, from what is written last."""
    try:
        names = set(os.listdir(folder))
    except OSError:
        return False
    if "checkpoint-is-incomplete.txt" in names or not _has_weights(folder, names):
        return False
    if any(name.startswith("random_states_") for name in names):  # Accelerate
        ranks = int(os.environ.get("WORLD_SIZE", "1"))
        return all(f"random_states_{rank}.pkl" in names for rank in range(ranks)) or "random_states_0.pkl" in names
    return _reads_as_json(os.path.join(folder, "trainer_state.json"))  # transformers


def newest_whole(parent: str, pattern: str) -> str | None:
    """The newest complete folder of this form in `parent`, by its number; None: there is none."""
    try:
        found = [(int(match[1]), match[0]) for name in os.listdir(parent) if (match := re.fullmatch(pattern, name))]
    except OSError:
        return None
    for _, name in sorted(found, reverse=True):
        if is_whole(os.path.join(parent, name)):
            return os.path.join(parent, name)
    return None


def newest_file(parent: str, suffix: str) -> str | None:
    """The newest file that torch.save has written to its end: such a file is an archive, whose directory comes last."""
    try:
        paths = [os.path.join(parent, name) for name in os.listdir(parent) if name.endswith(suffix)]
        paths.sort(key=os.path.getmtime, reverse=True)
    except OSError:
        return None
    return next((path for path in paths if zipfile.is_zipfile(path)), None)


def _has_weights(folder: str, names: set[str]) -> bool:
    for index in names & {"model.safetensors.index.json", "pytorch_model.bin.index.json"}:
        try:
            with open(os.path.join(folder, index), encoding="utf-8") as file:
                return set(json.load(file)["weight_map"].values()) <= names
        except (OSError, ValueError, KeyError):
            return False
    return any(re.match(r"((adapter_)?model|pytorch_model|global_step|pytorch_model_fsdp)[\w.-]*$", name)
               for name in names)


def _reads_as_json(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            json.load(file)
    except (OSError, ValueError):
        return False
    return True
