"""From what was seen to what it means: does the program resume, what is lost, are the results the same. Pure."""
from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from ddprun_rehearsal.play import Played
from ddprun_rehearsal.steps import Step

Key = Tuple[int, Optional[int]]  # rank, step; None: the values after the training
Values = Dict[Key, Dict[str, str]]
NOISE = 2.0  # times the difference of the two undisturbed runs is still noise
GRACE = re.compile(r"the workers have ([\d.]+) s to end")
RATES = ("lr", "learning_rate", "learning-rate")


@dataclass
class Reference:
    """The two undisturbed runs."""
    first: int  # step
    last: int
    stride: int
    values: Values
    noise: Dict[str, float]  # of each name, relative
    ended: bool  # the program ended by itself
    start_seconds: float  # from the start to the first step


@dataclass
class Verdict:
    fault: str
    done: str
    held: Optional[bool] = None
    finished: bool = False
    resumes: str = "unknown"  # yes, no, kept running, unknown
    played_at: int = -1  # step
    before: int = -1  # the furthest step before the restart
    first: int = -1  # step after the fault
    lost: int = 0
    same: str = "unknown"  # equal, within the noise, different, unknown
    name: str = ""  # of the value that differs most
    worst: float = 0.0  # relative
    noise: float = 0.0
    differs_from: Optional[int] = None  # the first step that differs
    differs_at_first: bool = False  # in the first step after the resume already
    shift: int = 0  # the values are those of a step so many later
    rate_repeats: bool = False  # a learning rate is that of the first steps
    restart_seconds: Optional[float] = None
    second_code: Optional[int] = None
    left: List[str] = field(default_factory=list)
    stop_ignored: bool = False
    saved_at_stop: bool = False
    torn: str = ""
    ranks: List[int] = field(default_factory=list)  # whose values differ
    skipped: int = -1  # the step of a newer snapshot than the one that was loaded
    unnoticed: bool = False  # a frozen rank
    causes: List[str] = field(default_factory=list)


def difference(one: str, other: str) -> float:
    """Relative; 0 where the texts are equal."""
    if one == other:
        return 0.0
    a, b = float(one), float(other)
    if math.isnan(a) and math.isnan(b) or a == b:
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(abs(a), abs(b))


def collect(steps: List[Step], first_attempt: int) -> Values:
    """The values of each step since that attempt; the newest ones count. Lines without a step belong to the end."""
    found: Values = {}
    for one in steps:
        if one.attempt >= first_attempt and not one.reported and one.values:
            found.setdefault((one.rank, one.step), {}).update(one.values)
    return found


def refer(one: Played, other: Played) -> Reference:
    seen = sorted({each.step for each in one.reader.seen() if each.step is not None})
    gaps = sorted(b - a for a, b in zip(seen, seen[1:]))
    values, again = collect(one.reader.steps, 0), collect(other.reader.steps, 0)
    noise: Dict[str, float] = {}
    for key, mine in values.items():
        for name, text in mine.items():
            if name in again.get(key, {}):
                noise[name] = max(noise.get(name, 0.0), difference(text, again[key][name]))
    ended = one.code is not None
    if not ended:
        values = {key: each for key, each in values.items() if key[1] is not None}
    return Reference(seen[0], seen[-1], gaps[len(gaps) // 2] if gaps else 1, values, noise, ended,
                     next(each.at for each in one.reader.seen()))


def _compare(verdict: Verdict, reference: Reference, values: Values) -> None:
    compared = 0
    first = min((key[1] for key in values if key[1] is not None), default=None)
    for key in sorted(values, key=lambda each: (each[1] is None, each[1] or 0, each[0])):
        for name, text in values[key].items():
            expected = reference.values.get(key, {}).get(name)
            if expected is None:
                continue
            compared += 1
            by, noise = difference(expected, text), reference.noise.get(name, 0.0)
            if by > noise * NOISE and (by > verdict.worst or verdict.same != "different"):
                verdict.name, verdict.worst, verdict.noise = name, by, noise
            if by > noise * NOISE:
                verdict.same = "different"
                verdict.ranks = sorted({key[0], *verdict.ranks})
                if verdict.differs_from is None and key[1] is not None:
                    verdict.differs_from, verdict.differs_at_first = key[1], key[1] == first
            elif by > 0 and verdict.same != "different":
                verdict.same = "within the noise"
                if noise >= verdict.noise:
                    verdict.name, verdict.noise = name, noise
    if compared and verdict.same == "unknown":
        verdict.same = "equal"


def _shift(reference: Reference, values: Values) -> int:
    """How many steps later the same values are in the undisturbed run: the counter of steps began again. 0: not so."""
    steps = sorted(key[1] for key in values if key[1] is not None)
    rank = min((key[0] for key in values), default=0)
    known = sorted(key[1] for key in reference.values if key[1] is not None and key[0] == rank)
    losses = [(step, values[rank, step]) for step in steps if (rank, step) in values][:5]
    if len(losses) < 3:
        return 0
    for by in [step - losses[0][0] for step in known if step > losses[0][0]]:
        found = [(mine, reference.values.get((rank, step + by), {})) for step, mine in losses]
        if all(theirs and any(name in theirs and "loss" in name for name in mine) and
               all(difference(text, theirs[name]) == 0 for name, text in mine.items()
                   if name in theirs and "loss" in name) for mine, theirs in found):
            return by
    return 0


def _rate_repeats(reference: Reference, values: Values) -> bool:
    """Whether the learning rate after the resume is that of the first steps, and was another one before."""
    for (rank, step), mine in sorted(values.items(), key=lambda each: (each[0][1] is None, each[0][1] or 0)):
        for name in mine:
            if step is None or name not in RATES:
                continue
            begin = reference.values.get((rank, reference.first), {}).get(name)
            there = reference.values.get((rank, step), {}).get(name)
            return begin is not None and there is not None and mine[name] == begin and there != begin
    return False


def _skipped(played: Played, after: int, first: int, stride: int) -> int:
    """The step of the newest snapshot before the fault, if the program resumed from an older one. Snapshots of the last
    moments may not have been complete, and one that was torn does not count."""
    if played.torn.endswith("half"):
        return -1
    times = [each.at for each in played.saves if each.at < (played.fault_at or 0.0) - 0.1]
    done = [each.step for each in played.reader.seen()
            if times and each.attempt < after and each.at < times[-1] - 0.05 and each.step is not None]
    return max(done) if done and first <= max(done) - stride else -1


def judge(played: Played, reference: Reference, step: int) -> Verdict:
    """Of one run with a fault at that step."""
    verdict = Verdict(played.fault, played.done, played_at=played.before, before=played.before, left=played.left,
                      torn=played.torn)
    reader = played.reader
    if played.fault_at is None:
        verdict.played_at = step
        return verdict  # the program ended before the step of the fault
    after = next((number for number, at in enumerate(reader.starts) if at >= played.fault_at), None)
    seen = [each for each in reader.seen() if after is not None and each.attempt >= after]
    verdict.second_code = played.code
    reached = max((each.step or 0 for each in reader.seen()), default=-1)
    verdict.finished = not played.silent and played.code in (None, 0) and reached >= reference.last - reference.stride
    if seen:
        verdict.first = min(each.step for each in seen[:max(1, reader.workers)] if each.step is not None)
        verdict.before = max(each.step or 0 for each in reader.seen() if each.attempt < after)
        verdict.skipped = _skipped(played, after, verdict.first, reference.stride)
        verdict.restart_seconds = seen[0].at - played.fault_at
        verdict.lost = max(0, verdict.before + reference.stride - verdict.first)
        verdict.resumes = "yes" if verdict.first > reference.first else "no"
    elif after is None and played.fault in ("disk",) and verdict.finished:
        verdict.resumes = "kept running"
    values = collect(reader.steps, after if after is not None else 0)
    if not (reference.ended and played.code is not None):
        values = {key: each for key, each in values.items() if key[1] is not None}
    _compare(verdict, reference, values)
    if verdict.resumes == "no":
        verdict.shift = _shift(reference, values)
    verdict.rate_repeats = _rate_repeats(reference, values)
    verdict.unnoticed = played.fault == "hang" and after is None
    if played.fault == "stop":
        begin, end = played.fault_at, played.second_start or played.seconds
        grace = [float(match[1]) for at, line in reader.own if at >= begin and (match := GRACE.search(line))]
        until = max((each.step or 0 for each in reader.seen() if each.at < end), default=-1)
        verdict.stop_ignored = played.silent or bool(grace) and end - begin >= grace[0] - 0.2 or \
            until >= reference.last
        verdict.saved_at_stop = any(begin - 0.05 <= each.at <= end for each in played.saves)
    good = (verdict.finished, verdict.resumes in ("yes", "kept running"), verdict.same in ("equal", "within the noise"),
            not verdict.left, verdict.skipped < 0 or verdict.resumes == "no", not verdict.stop_ignored)
    verdict.held = all(good)
    return verdict
