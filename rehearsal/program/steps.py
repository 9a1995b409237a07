"""Steps and numbers in the lines of a job: which step each rank has printed, and with which values. Pure."""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

NUMBER = r"[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+|nan|inf)"
COUNTERS = [  # the first that fits wins; a name before the number, and how a person would call it
    ("step", re.compile(r"\b(?:global[ _]?)?(?:step|iteration|iter)\b['\"]?\s*[:=#\[]?\s*(\d+)", re.I)),
    ("progress bar", re.compile(r"\|\s*(\d+)/\d+\s*\[")),
    ("batch", re.compile(r"\bbatch\b['\"]?\s*[:=#\[]?\s*(\d+)", re.I)),
    ("epoch", re.compile(r"\bepoch\b['\"]?\s*[:=#\[]?\s*(\d+)", re.I)),
]
EPOCH = COUNTERS[-1][1]
VALUE = re.compile(r"([A-Za-z_][\w./-]*)['\"]?\s*[:=]?\s+?(%s)(?![\w.])|"
                   r"([A-Za-z_][\w./-]*)[:=](%s)(?![\w.])" % (NUMBER, NUMBER))
CLOCKS = re.compile(r"time|sec|^s$|^ms|_ms|elapsed|eta|took|speed|per_|/s|throughput|tokens|mem|^dt$|mfu|port|pid|"
                    r"attempt|rank|world|^step$|^iter|^batch$|^epoch$|^in$|^of$|^at$|^after$|from|device|worker", re.I)
LABEL = re.compile(r"\[[^\]]*?(\d+)\]:")
GENERATION = re.compile(r"generation (\d+): \d+ nodes?, (\d+) workers?")
STATUS = re.compile(r"generation \d+ has run for .*?, step (\d+)")
OWN = re.compile(r"(?:\S+ )?ddprun(?: \S+)?: ")


@dataclass
class Step:
    """One line that counts: `step` is None where a line has values and no step."""
    attempt: int
    rank: int
    step: Optional[int]
    values: Dict[str, str]
    at: float
    reported: bool = False  # read from ddprun's line of state, not from a line of the script


def values_in(text: str) -> Dict[str, str]:
    """The numbers with a name that a run repeats: "loss 0.52 lr=1e-4". Times and ids are left out."""
    found = {}
    for match in VALUE.finditer(text):
        name, number = (match[1] or match[3]).lower(), match[2] or match[4]
        if not CLOCKS.search(name):
            found[name] = number
    return found


@dataclass
class Reader:
    """Lines in, steps out. One for each run; `attempt` counts the generations of all its jobs."""
    pattern: Optional["re.Pattern[str]"] = None
    steps: List[Step] = field(default_factory=list)
    own: List[Tuple[float, str]] = field(default_factory=list)
    tail: List[str] = field(default_factory=list)
    attempt: int = -1
    workers: int = 0
    starts: List[float] = field(default_factory=list)
    counters: Dict[str, int] = field(default_factory=dict)
    _epoch: Optional[int] = None  # the first one
    _length: int = 0  # of an epoch, where the steps begin again in each
    _last: Dict[int, Tuple[int, int, int]] = field(default_factory=dict)  # of a rank: attempt, epoch, step

    def line(self, text: str, at: float) -> None:
        text = text.rstrip()
        self.tail = self.tail[-39:] + [text]
        label = LABEL.match(text)
        if not label and OWN.match(text):
            self._own(text, at)
        elif self.attempt >= 0:
            self._worker(int(label[1]) if label else 0, text[label.end():] if label else text, at)

    def _own(self, text: str, at: float) -> None:
        self.own.append((at, text))
        if match := GENERATION.search(text):
            self.attempt += 1
            self.workers = int(match[2])
            self.starts.append(at)
        elif match := STATUS.search(text):
            self.steps.append(Step(self.attempt, -1, int(match[1]), {}, at, True))

    def _worker(self, rank: int, text: str, at: float) -> None:
        step = self._count(rank, text)
        values = values_in(text)
        if step is not None or values:
            self.steps.append(Step(self.attempt, rank, step, values, at))

    def _count(self, rank: int, text: str) -> Optional[int]:
        if self.pattern is not None:
            match = self.pattern.search(text)
            return int(match[1]) if match else None
        for name, counter in COUNTERS:
            if match := counter.search(text):
                self.counters[name] = self.counters.get(name, 0) + 1
                return self._in_all(rank, text, int(match[1])) if name != "epoch" else int(match[1])
        return None

    def _in_all(self, rank: int, text: str, step: int) -> int:
        """A step of an epoch, as a step of the whole run."""
        match = EPOCH.search(text)
        if not match:
            return step
        epoch = int(match[1])
        self._epoch = epoch if self._epoch is None else self._epoch
        attempt, last_epoch, last = self._last.get(rank, (self.attempt, epoch, step))
        if attempt == self.attempt and epoch > last_epoch and step <= last and not self._length:
            self._length = last + 1
        self._last[rank] = (self.attempt, epoch, step)
        return (epoch - self._epoch) * self._length + step

    def seen(self) -> List[Step]:
        """The steps by the best source: printed lines if there are any, else what was reported."""
        printed = [one for one in self.steps if one.step is not None and not one.reported]
        return printed or [one for one in self.steps if one.step is not None]

    def newest(self) -> int:
        """The step that all ranks that print have reached in this attempt; -1: none."""
        ranks: Dict[int, int] = {}
        for one in self.seen():
            if one.attempt == self.attempt and one.step is not None:
                ranks[one.rank] = max(one.step, ranks.get(one.rank, -1))
        return min(ranks.values()) if ranks else -1

    def source(self) -> str:
        if any(one.step is not None and not one.reported for one in self.steps):
            if self.pattern is not None:
                return "printed lines that match %r" % self.pattern.pattern
            name = max(self.counters, key=lambda each: self.counters[each])
            return "printed lines (%s)" % name
        return "reported progress" if self.seen() else ""
