"""The probable causes: by what differs, by the names in the snapshot, by the files and by the script's text. Pure."""
from __future__ import annotations

import re
from typing import List

from ddprun_rehearsal.judge import Reference, Verdict
from ddprun_rehearsal.play import Played

SMALL = 64  # bytes: a file that is written in one go
PARTS = {
    "the optimizer's state": r"optim|momentum|exp_avg|param_groups",
    "the learning rate scheduler": r"sched|last_epoch|_last_lr",
    "the gradient scaler": r"scaler|growth_tracker|_scale$|loss_scale",
    "the random state": r"rng|random|seed|generator",
    "the position in the data": r"sampler|loader|position|^done|samples|consumed|offset|cursor|batch|(?<!last_)epoch",
}
USES = {  # what in a script shows that it has this part
    "the optimizer's state": r"optim",
    "the learning rate scheduler": r"sched|lr_lambda",
    "the gradient scaler": r"scaler",
    "the random state": r"random|dropout|randn|manual_seed",
    "the position in the data": r"data|sampler|loader|batch",
}


def missing(names: List[str], script: str, part: str) -> bool:
    return bool(names) and bool(re.search(USES[part], script, re.I)) and \
        not any(re.search(PARTS[part], name, re.I) for name in names)


def _where(names: List[str], part: str) -> str:
    if not names:
        return "the snapshot cannot be read here"
    there = any(re.search(PARTS[part], name, re.I) for name in names)
    return "the snapshot has it, so it is not loaded" if there else "the snapshot lacks it"


def _of_values(verdict: Verdict, names: List[str], script: str) -> List[str]:
    """Why the values after the resume are others."""
    if verdict.ranks and 0 not in verdict.ranks:
        return ["the values of rank 0 are right after a resume, and those of other ranks differ: they load the "
                "snapshot of rank 0, or their own state is not saved"]
    if verdict.rate_repeats:
        part = "the learning rate scheduler"
        return ["the learning rate starts again at its first value after a resume: %s" % _where(names, part)]
    if verdict.differs_at_first:
        lacking = [part for part in ("the position in the data", "the random state") if missing(names, script, part)]
        if lacking:
            return ["%s is not restored: the snapshot lacks it, and the first values after the resume differ" % part
                    for part in lacking]
        return ["the first values after the resume differ already: the model's weights, the position in the data or "
                "the random state is not restored as it was"]
    # The samples and the random numbers of a step are in its loss already: those were right.
    order = ("the optimizer's state", "the gradient scaler", "the learning rate scheduler")
    lacking = [part for part in order if missing(names, script, part)]
    if lacking:
        return ["%s is not restored: the snapshot lacks it, and values differ from the second step on"
                % lacking[0]]
    return ["the values differ from the second step after the resume: the state of the optimizer, the scheduler or the "
            "gradient scaler is saved and not loaded"]


def _of_no_resume(verdict: Verdict, played: Played) -> List[str]:
    if verdict.shift:
        return ["the counter of steps starts again, and the weights do not: the values are those of %d steps later"
                % verdict.shift]
    if not played.saves:
        return ["no snapshot is written"]
    return ["snapshots are written (%d so far) and none is loaded at the start" % len(played.saves)]


def port_in_use(played: Played) -> bool:
    return bool(re.search(r"address already in use|EADDRINUSE", "\n".join(played.reader.tail), re.I))


def find(verdict: Verdict, played: Played, reference: Reference, script: str) -> List[str]:
    """The causes of what has not held, the surest first."""
    found: List[str] = []
    if port_in_use(played):
        found.append("a port is fixed in the script: the next start finds it in use")
    if verdict.unnoticed:
        found.append("ddprun does not notice a frozen rank: the program reports no progress, and its ranks do not wait "
                     "in collectives of Gloo. Report progress")
    if verdict.stop_ignored:
        found.append("the stop is ignored: the ranks train on until their grace is over or the training is done")
    if verdict.left:
        found.append("processes of the script stay after its end, for example of a DataLoader: " + verdict.left[0])
    if played.torn.endswith("half") and not verdict.finished:
        found.append("a snapshot is written in place: a kill during a save tears it, and the next start fails. Write "
                     "to another name, then rename")
    if verdict.resumes == "no":
        found += _of_no_resume(verdict, played)
    elif verdict.skipped >= 0:
        found.append("an older snapshot is loaded: one of step %d or later was there, so what names the newest "
                     "(\"latest\") is stale" % verdict.skipped)
    if verdict.resumes == "yes" and verdict.same == "different":
        found += _of_values(verdict, played.names, script)
    return found


def _writers(played: Played) -> List[str]:
    """Files of snapshots that are written more than once at most steps."""
    snapshots = {each.path for each in played.saves}
    found = []
    for path in sorted(snapshots):
        times = [at for at, written in played.writes if written == path]
        steps = {max((each.step or 0 for each in played.reader.seen() if each.at <= at), default=-1) for at in times}
        if played.reader.workers > 1 and len(steps) >= 2 and len(times) >= 1.6 * len(steps):
            found.append(path.rpartition("/")[2])
    return found


def warnings(played: Played, script: str) -> List[str]:
    """What the undisturbed run shows already."""
    found = []
    if "DistributedSampler" in script and "set_epoch" not in script:
        found.append("set_epoch() is not called: a DistributedSampler then gives the same order in each epoch")
    found += ["all ranks write to one file: " + name for name in _writers(played)[:3]]
    in_place = sorted({each.path.rpartition("/")[2] for each in played.saves
                       if each.how == "in place" and each.size >= SMALL})
    if in_place:
        found.append("written in place, so a kill during a save leaves a torn file: " + ", ".join(in_place[:3]))
    return found
