"""One run of the user's program under ddprun, with at most one fault: starts it, reads its lines, and plays the fault
at its step. It decides nothing about the result (judge.py does)."""
from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from ddprun_rehearsal.contents import names_in
from ddprun_rehearsal.private import PrivateCopy, libc
from ddprun_rehearsal.steps import Reader
from ddprun_rehearsal.watch import Save, Watch

MARK = "DDPRUN_REHEARSAL"
SILENCE = 300.0  # seconds without a step or an end, before an undisturbed run is given up
PR_SET_PDEATHSIG = 1
LEAVES = 5.0  # processes of a job that has ended may need as long


@dataclass
class Order:
    """What to play. `step`: of the fault, or of the end of an undisturbed run."""
    command: List[str]
    environment: Dict[str, str]
    last: int  # the run ends at this step
    fault: str = ""
    step: int = -1
    choice: int = 0  # which rank, drawn before
    pattern: Optional[object] = None
    patience: float = 300.0  # seconds without a step after the fault, before the run is given up


@dataclass
class Played:
    """What was seen."""
    fault: str
    reader: Reader
    saves: List[Save] = field(default_factory=list)
    writes: List[Tuple[float, str]] = field(default_factory=list)
    code: Optional[int] = None  # None: the rehearsal has ended it after its last step
    seconds: float = 0.0
    fault_at: Optional[float] = None  # since the start
    before: int = -1  # the newest step at the fault
    second_start: Optional[float] = None  # where a second job was needed
    first_code: Optional[int] = None
    torn: str = ""  # the file, and what it was made
    silent: bool = False  # given up
    left: List[str] = field(default_factory=list)
    names: List[str] = field(default_factory=list)  # in the newest snapshot
    done: str = ""  # what the fault did, for the report


def processes(mark: str) -> Dict[int, Dict[str, str]]:
    """Living processes with the mark, with their environment."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if ("%s=%s" % (MARK, mark)).encode() in words:
            pairs = (each.decode(errors="replace").partition("=") for each in words)
            found[int(name)] = {key: value for key, _, value in pairs}
    return found


def parent_of(pid: int) -> int:
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def workers(mark: str) -> Dict[int, int]:
    """The process of each rank: the outermost one that has the rank in its environment."""
    marked = processes(mark)
    return {int(environment["RANK"]): pid for pid, environment in sorted(marked.items())
            if environment.get("RANK", "").isdigit() and "RANK" not in marked.get(parent_of(pid), {})}


def die_with_rehearsal() -> None:
    """In the child: ddprun is killed with us, and its keeper ends the workers. Otherwise it would train to its end."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def describe(pid: int) -> str:
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return "%d %s" % (pid, file.read().replace(b"\0", b" ").decode(errors="replace").strip()[:80])
    except OSError:
        return str(pid)


class Player:
    def __init__(self, order: Order, copy: PrivateCopy, mark: str) -> None:
        self._order, self._copy, self._mark = order, copy, mark
        self._environment = dict(order.environment, **{MARK: mark})
        self._begin = time.monotonic()
        self._rest = b""
        self.seen = Played(order.fault, Reader(order.pattern))
        self._watch = Watch(copy)
        self._frozen = 0
        self._full = False

    def play(self) -> Played:
        seen = self.seen
        try:
            self._start()
            self._until_end()
            if self._needs_second_job():
                seen.first_code = self._job.returncode
                self._between()
                seen.second_start = self._now()
                self._start()
                self._until_end()
            seen.left = self._leftovers()
        finally:
            self._kill_all()
            self._look()
            self._watch.close()
        seen.seconds = self._now()
        seen.saves, seen.writes = self._watch.saves, self._watch.writes
        # A file that only names the newest snapshot has no names in it.
        seen.names = next(filter(None, (names_in(save.path) for save in reversed(seen.saves))), [])
        return seen

    def _now(self) -> float:
        return time.monotonic() - self._begin

    def _start(self) -> None:
        self._job = subprocess.Popen(self._order.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, env=self._environment, start_new_session=True,
                                     preexec_fn=die_with_rehearsal)
        self._heard = self._now()

    def _needs_second_job(self) -> bool:
        return self.seen.fault_at is not None and self._order.fault in ("node", "stop", "torn") and \
            not self.seen.silent and self.seen.second_start is None

    def _until_end(self) -> None:
        """Until the job has ended, the last step is done, or nothing has happened for too long."""
        seen, pipe = self.seen, self._job.stdout
        seen.code = None
        while True:
            ready = select.select([pipe], [], [], 0.02)[0]
            text = os.read(pipe.fileno(), 1 << 16) if ready else b""
            if ready and not text:
                break
            self._lines(text)
            self._look()
            self._act()
            if self._at_end():
                return self._end_job()
            if self._now() - self._heard > (self._order.patience if seen.fault_at is not None else SILENCE):
                seen.silent = True
                return self._end_job()
        self._job.wait()
        seen.code = self._job.returncode

    def _lines(self, text: bytes) -> None:
        *lines, self._rest = (self._rest + text.replace(b"\r", b"\n")).split(b"\n")
        steps = len(self.seen.reader.steps)
        for line in lines:
            self.seen.reader.line(line.decode(errors="replace"), self._now())
        if len(self.seen.reader.steps) > steps:
            self._heard = self._now()

    def _look(self) -> None:
        self._watch.look(self._now())

    def _at_end(self) -> bool:
        if self.seen.reader.newest() < self._order.last:
            return False
        return not self._order.fault or self.seen.fault_at is not None and not self._stopping()

    def _stopping(self) -> bool:
        return self._order.fault == "stop" and self.seen.second_start is None

    def _end_job(self) -> None:
        self._kill_all()
        self._job.wait()

    def _act(self) -> None:
        reader, order = self.seen.reader, self._order
        if not order.fault or self.seen.fault_at is not None or reader.newest() < order.step:
            if self._full and (reader.attempt > 0 or self._now() - (self.seen.fault_at or 0) > 20):
                self._copy.fill(False)
                self._full = False
            return
        self.seen.fault_at, self.seen.before = self._now(), reader.newest()
        ranks = workers(self._mark)
        rank = sorted(ranks)[order.choice % len(ranks)] if ranks else -1
        if order.fault in ("kill", "hang") and rank >= 0:
            os.kill(ranks[rank], signal.SIGKILL if order.fault == "kill" else signal.SIGSTOP)
            self.seen.done = "rank %d got %s" % (rank, "SIGKILL" if order.fault == "kill" else "SIGSTOP")
        elif order.fault in ("node", "torn"):
            self._kill_all()
            self.seen.done = "ddprun and all ranks got SIGKILL; the job was started again"
        elif order.fault == "stop":
            self._job.send_signal(signal.SIGTERM)
            self.seen.done = "ddprun got SIGTERM; the job was started again"
        elif order.fault == "disk":
            self._copy.fill(True)
            self._full = True
            self.seen.done = "the disk was full until the restart"

    def _between(self) -> None:
        """After the first job: a save that was under way is made what a kill leaves of it."""
        self._look()
        saves = self._watch.saves
        if self._order.fault != "torn" or not saves:
            return
        last = saves[-1]
        if last.how == "in place":
            os.truncate(last.path, last.size // 2)
            self.seen.torn = "%s was cut to its half" % self.short(last.path)
            return
        self.seen.torn = "%s is renamed into its place: a kill cannot tear it" % self.short(last.path)
        for part in reversed(list(self._watch.temporary)):
            if os.path.dirname(part) == os.path.dirname(last.path) and not os.path.lexists(part):
                with open(last.path, "rb") as whole, open(part, "wb") as half:
                    half.write(whole.read(last.size // 2))
                self.seen.torn += "; the half of it is left in %s" % self.short(part)
                return

    def short(self, path: str) -> str:
        return os.path.relpath(path, self._copy.folder) if path.startswith(self._copy.folder + "/") else path

    def _leftovers(self) -> List[str]:
        end = time.monotonic() + LEAVES
        while (left := processes(self._mark)) and time.monotonic() < end:
            time.sleep(0.05)
        return [describe(pid) for pid in left]

    def _kill_all(self) -> None:
        """ddprun first, so that it starts nothing meanwhile."""
        if self._job.poll() is None:
            self._job.kill()
        end = time.monotonic() + LEAVES
        while (left := processes(self._mark)) and time.monotonic() < end:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.02)
