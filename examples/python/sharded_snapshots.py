"""Snapshots of which each rank writes its part (torch.distributed.checkpoint), and what the launcher asks of a worker.

A snapshot is a folder `step-N`. It is complete when its file .metadata is there, which is renamed into its place after
all parts. Any number of workers loads it: each reads what it needs of the parts."""
import os, pathlib, shutil, signal, time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict

# Flat names for the optimizer's state: the number of a parameter depends on which parameters a rank has.
OPTIONS = StateDictOptions(flatten_optimizer_state_dict=True)
KEPT = 2


class Snapshots:
    def __init__(self, folder, model, optimizer):
        self.folder, self.model, self.optimizer = pathlib.Path(folder), model, optimizer
        self.stop_file = os.environ.get("DDPRUN_STOP_FILE", "")
        self.snapshot_file = os.environ.get("DDPRUN_SNAPSHOT_FILE", "")
        if self.stop_file:  # a stop comes as this file, too, and the worker ends after a last snapshot
            signal.signal(signal.SIGTERM, lambda *_: None)
        told = os.environ.get("DDPRUN_PROGRESS_FD")
        self.progress = os.fdopen(int(told), "w", 1) if told else None
        self.saved, self.saving = -1, 0.0  # saving: milliseconds that snapshots have taken from training

    def complete(self):
        """The steps of all complete snapshots, the newest last."""
        return sorted(int(file.parent.name.removeprefix("step-")) for file in self.folder.glob("step-*/.metadata"))

    def state(self, step):
        model, optimizer = get_state_dict(self.model, self.optimizer, options=OPTIONS)
        return {"model": model, "optimizer": optimizer, "step": step}

    def resume(self):
        """Loads the newest snapshot, and returns the step at which the training goes on."""
        newest = [max(self.complete(), default=-1)]
        dist.broadcast_object_list(newest)  # all ranks load what rank 0 has seen
        if newest[0] < 0:
            return 0
        state = self.state(0)
        dcp.load(state, checkpoint_id=self.folder / f"step-{newest[0]}")
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"],
                       optim_state_dict=state["optimizer"], options=OPTIONS)
        self.saved = state["step"]
        if dist.get_rank() == 0:
            print(f"resumed at step {self.saved} with {dist.get_world_size()} workers", flush=True)
        return state["step"]

    def after(self, step, every):
        """All ranks call it after each step. Saves if it is time or if it is asked for, and returns whether to stop."""
        asked = torch.tensor([os.path.exists(self.stop_file), os.path.exists(self.snapshot_file)], dtype=torch.int32)
        dist.all_reduce(asked, dist.ReduceOp.MAX)  # all stop after the same step
        stop, snapshot = asked.tolist()
        if snapshot and os.environ["LOCAL_RANK"] == "0" and os.path.exists(self.snapshot_file):
            os.remove(self.snapshot_file)  # it is being written
        if step % every == 0 or stop or snapshot:
            begun = time.monotonic()
            dcp.save(self.state(step), checkpoint_id=self.folder / f"step-{step}")
            self.saved, self.saving = step, self.saving + 1000 * (time.monotonic() - begun)
            for old in self.complete()[:-KEPT] if dist.get_rank() == 0 else []:
                shutil.rmtree(self.folder / f"step-{old}")
        if self.progress:
            # What --hang-timeout and the budget of restarts look at.
            print(f"step={step} snapshot={self.saved} saving_ms={self.saving:.0f}", file=self.progress)
        return bool(stop)


def crash_if_asked(args, step):
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if first and (dist.get_rank(), step) == (args.crash_rank, args.crash_at_step):
        os._exit(3)


def add_options(options):
    """The options that the three scripts share."""
    options.add_argument("--snapshots", required=True, help="a folder that all nodes see")
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--snapshot-every", type=int, default=10)
    options.add_argument("--crash-at-step", type=int, default=-1, help="in the first attempt; to try the resume")
    options.add_argument("--crash-rank", type=int, default=1)
