"""ddprun for transformers: a callback that obeys ddprun's stop, reports progress and writes a checkpoint on request.

    from ddprun.transformers import DdprunCallback, newest_checkpoint
    trainer = Trainer(model, args, train_dataset=data, callbacks=[DdprunCallback()])
    trainer.train(resume_from_checkpoint=newest_checkpoint("out"))

All ranks stop after the same step, and the Trainer writes its `checkpoint-N`. Then the process ends: no line after
`train()` is run. `newest_checkpoint()` passes over a folder whose writing was interrupted."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Iterator

from transformers import Trainer, TrainerCallback

from . import progress, stop_requested
from ._frameworks import agree_with_torch, begin_snapshot, end_after, newest_whole, wishes
from ._torn import Record

__all__ = ["DdprunCallback", "newest_checkpoint"]


def newest_checkpoint(folder: str) -> str | None:
    """The newest `checkpoint-N` in this folder that is complete; None: there is none. For resume_from_checkpoint."""
    return newest_whole(folder, r"checkpoint-(\d+)")


class DdprunCallback(TrainerCallback):
    def __init__(self) -> None:
        self.stopped = False
        self._saving = self._saved = -1  # the step of a checkpoint that has begun, and that is complete
        self._record, self._loads, self._begin = Record(), None, 0
        stop_requested()  # from here on SIGTERM is a request
        end_after(Trainer, "train", lambda trainer: any(each.stopped for each in _callbacks(trainer)), _watched)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._begin = state.global_step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        stop, snapshot = agree_with_torch(wishes(), args.device)
        self._saved = self._saving  # all ranks have come to this step since
        self._record.all_have_saved()
        self._record.first_step(_folder(args, self._begin) if self._loads is True else self._loads or "")
        if stop or snapshot:
            begin_snapshot()
            control.should_save = True
        if stop:
            self.stopped = True
            control.should_training_stop = True
            control.should_evaluate = False
        self._begin_save(args, state, control)
        progress(state.global_step, snapshot=self._saved if self._saved >= 0 else None)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._begin_save(args, state, control)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._saving = state.global_step
        self._record.end(_folder(args, state.global_step))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # No step follows, so nothing else would report this checkpoint.
        if not self.stopped or self._saving != state.global_step:
            return
        agree_with_torch((True, False), args.device)  # all ranks have written
        self._saved = self._saving
        self._record.all_have_saved()
        progress(state.global_step, snapshot=self._saved)
        if state.is_world_process_zero:
            print(f"ddprun: the checkpoint of step {self._saved} is complete: {_folder(args, self._saved)}",
                  file=sys.stderr, flush=True)

    def _begin_save(self, args: Any, state: Any, control: Any) -> None:
        # The trials of a search have folders of their own.
        if control.should_save and not state.is_hyper_param_search:
            self._record.begin(_folder(args, state.global_step))


def _folder(args: Any, step: int) -> str:
    return os.path.join(args.output_dir, f"checkpoint-{step}")


def _callbacks(trainer: Any) -> list[DdprunCallback]:
    return [each for each in trainer.callback_handler.callbacks if isinstance(each, DdprunCallback)]


@contextlib.contextmanager
def _watched(trainer: Any, resume_from_checkpoint: Any = None, *_: Any, **__: Any) -> Iterator[None]:
    """Around train(): what it loads, and how it ends."""
    callbacks = _callbacks(trainer)
    for each in callbacks:
        each._loads = resume_from_checkpoint
    try:
        yield
    except Exception:
        for each in callbacks:
            each._record.failed()
        raise
    for each in callbacks:
        if not each.stopped:
            each._record.done()
