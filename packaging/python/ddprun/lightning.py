"""ddprun for Lightning: a callback that obeys ddprun's stop, reports progress and writes a checkpoint on request.

    from ddprun.lightning import DdprunCallback
    trainer = lightning.Trainer(..., callbacks=[DdprunCallback(), ModelCheckpoint(dirpath="ckpt", save_last=True)])
    trainer.fit(model, data, ckpt_path="last")

All ranks stop after the same step. The checkpoint goes where the next start looks for it: `last.ckpt` in the folder of
a ModelCheckpoint that has `dirpath` and `save_last`; one named `epoch=E-step=S.ckpt` in that folder without
`save_last`; and without a folder `hpc_ckpt_N.ckpt` in `default_root_dir`, which Lightning itself loads under Slurm.
Then the process ends: no line after `fit()` is run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
from typing import Any

from . import progress, stop_requested
from ._frameworks import begin_snapshot, end_after, newest_file, wishes

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback, Trainer
    from pytorch_lightning.callbacks import ModelCheckpoint
    from pytorch_lightning.plugins.environments import SLURMEnvironment
else:
    from lightning.pytorch import Callback, Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.plugins.environments import SLURMEnvironment

__all__ = ["DdprunCallback", "newest_checkpoint"]


def newest_checkpoint(folder: str) -> str | None:
    """The newest checkpoint of this folder that was written to its end; None: there is none. For `ckpt_path`."""
    return newest_file(folder, ".ckpt")


class DdprunCallback(Callback):
    def __init__(self) -> None:
        self.stopped = False
        self._path: str | None = None
        self._before: Any = signal.SIG_DFL  # the handler of SIGTERM before Lightning's own
        self._step = self._saving = self._saved = -1  # steps: now, of a checkpoint that has begun, of a complete one
        stop_requested()  # from here on SIGTERM is a request
        end_after(Trainer, "fit", lambda trainer: any(
            isinstance(each, DdprunCallback) and each.stopped for each in trainer.callbacks))

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        # ModelCheckpoint fills in a folder of its own later: that one is new in each start.
        with_folder = [each for each in trainer.checkpoint_callbacks
                       if isinstance(each, ModelCheckpoint) and each.dirpath]
        with_last = [each for each in with_folder if each.save_last]
        if with_last:
            self._path = os.path.join(with_last[0].dirpath,
                                      ModelCheckpoint.CHECKPOINT_NAME_LAST + ModelCheckpoint.FILE_EXTENSION)
        elif with_folder:
            self._path = os.path.join(with_folder[0].dirpath, "epoch={epoch}-step={step}.ckpt")
        # ddprun puts the job back into the queue.
        environment = getattr(trainer.strategy, "cluster_environment", None)
        if isinstance(environment, SLURMEnvironment):
            environment.auto_requeue = False
        self._before = signal.getsignal(signal.SIGTERM)

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        self._take_signal()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._take_signal()

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        self._saving = trainer.global_step

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        if trainer.global_step == self._step:
            return  # gradients are accumulated: a checkpoint would not have them
        self._step = trainer.global_step
        if self._saving < self._step:
            self._saved = self._saving  # all ranks have come to the next step since
        # One decision in a step in which nobody asks for anything.
        stop, snapshot = wishes()
        agree = trainer.strategy.reduce_boolean_decision
        if agree(stop or snapshot, all=False):
            self.stopped = agree(stop, all=False)
            self._save(trainer)
            trainer.should_stop = trainer.should_stop or self.stopped
        progress(trainer.global_step, snapshot=self._saved if self._saved >= 0 else None)

    def _save(self, trainer: Any) -> None:
        begin_snapshot()
        path = (self._path or _hpc_path(trainer.default_root_dir)).format(
            epoch=trainer.current_epoch, step=trainer.global_step)
        if "://" in path:
            trainer.save_checkpoint(path)
        else:
            trainer.save_checkpoint(path + ".part")  # all ranks have written when this returns
            if trainer.is_global_zero:
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                os.replace(path + ".part", path)
            trainer.strategy.barrier("ddprun")
        self._saved = trainer.global_step
        if trainer.is_global_zero:
            print(f"ddprun: the checkpoint of step {self._saved} is complete: {path}", file=sys.stderr, flush=True)

    def _take_signal(self) -> None:
        """Lightning's own handler makes a collective call that the other ranks do not make, and ends the training
        without a checkpoint. The one before it stays: that of the script, or one that notes the request."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._before)


def _hpc_path(folder: str) -> str:
    """The next one of those that Lightning loads by itself under Slurm."""
    try:
        found = [int(match[1]) for name in os.listdir(folder) if (match := re.fullmatch(r"hpc_ckpt_(\d+)\.ckpt", name))]
    except OSError:
        found = []
    return os.path.join(folder, f"hpc_ckpt_{max(found, default=0) + 1}.ckpt")
