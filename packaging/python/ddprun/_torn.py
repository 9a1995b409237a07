"""Moves a torn checkpoint folder out of the way (--set-aside-torn).

transformers writes the files of `checkpoint-20` into the folder itself. A process that is killed meanwhile leaves it
torn, and each start takes the newest folder. Rank 0's callback therefore keeps a record: which save has begun, which
folder is proved whole. Before the next generation's programs run, each of its workers reads the record. The first one
renames the folder; for the others it is gone by then, so none of them sees it. Nothing is ever deleted.

decide() is pure. Record is the shell of the callback, before_start() that of a start. Errors of the file system are
reported in a line, and leave everything as it was."""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import stat
import sys
from typing import Any, NamedTuple

VARIABLE = "DDPRUN_SET_ASIDE_TORN"  # the record's folder, from ddprun
MOST_FILES = 10_000  # of a checkpoint that is looked at
FOLDER, GONE, LINK, OTHERS = "a folder", "gone", "a link", "another user's"


class Seen(NamedTuple):
    """What a start finds on disk."""
    generation: str  # the one that starts
    alive: bool = False  # the process that wrote the record
    kind: str = GONE  # what is where the torn folder was written
    kind_aside: str = GONE  # what has the name that it gets
    newest: tuple[str, ...] = ()  # names of the checkpoints there, the newest first
    whole: bool = False  # each file of the proved checkpoint is there, with its size
    raised: bool = False  # a trainer raised an exception before its first step since the folder was set aside


class Decision(NamedTuple):
    move: tuple[str, str] | None = None  # from, to
    back: bool = False
    refusal: str = ""  # why a folder that should be moved is not


def decide(record: dict[str, Any], seen: Seen) -> Decision:
    """Which folder has to be moved before this generation's programs run."""
    if seen.alive or record["generation"] == seen.generation:
        return Decision()
    if record["aside"]:
        torn, aside = record["aside"]
        if seen.raised:
            return _move(aside, seen.kind_aside, torn, seen.kind, back=True)
        # Another worker has decided, and may not have moved it yet.
        return _move(torn, seen.kind, aside, GONE) if seen.kind_aside == GONE else Decision()
    torn, whole = record["begun"], record["whole"]
    if not torn or not whole or not seen.whole or os.path.dirname(torn) != os.path.dirname(whole):
        return Decision()
    # The start would take the newest one, and then the one before it.
    if seen.newest[:2] != (os.path.basename(torn), os.path.basename(whole)):
        return Decision()
    return _move(torn, seen.kind, place_aside(torn), seen.kind_aside)


def _move(source: str, kind: str, target: str, kind_of_target: str, back: bool = False) -> Decision:
    if kind == GONE:
        return Decision()
    if kind != FOLDER:
        return Decision(refusal=f"{source} is {kind}")
    if kind_of_target != GONE:
        return Decision(refusal=f"{target} exists")
    return Decision((source, target), back)


def place_aside(path: str) -> str:
    """Outside of the folder, since Accelerate takes each name with a number. The failure report names the same."""
    parent, name = os.path.split(path)
    return f"{parent}.torn-{name}"


def newest_names(names: list[str]) -> tuple[str, ...]:
    """Those of checkpoints, the one with the highest number first."""
    found = [(int(match[1]), match[0]) for name in names if (match := re.fullmatch(r"checkpoint-(\d+)", name))]
    return tuple(name for _, name in sorted(found, reverse=True))


def empty() -> dict[str, Any]:
    return {"generation": "", "host": "", "pid": 0, "born": 0, "begun": None, "whole": None, "files": {},
            "aside": None}


def this_generation() -> str:
    return os.environ.get("SLURM_RESTART_COUNT", "0") + "." + os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


class Record:
    """The record of this run, for the callback of one process. All of it does nothing without --set-aside-torn."""

    def __init__(self) -> None:
        self.path = _path()
        self._writes = os.environ.get("RANK", "0") == "0"
        self._ended: str | None = None  # a save of which this rank has written its part
        self._has_stepped = False
        self._record = (_read(self.path) if self.path else None) or empty()
        if self.path and self._writes:
            self._record.update(generation=this_generation(), host=socket.gethostname(), pid=os.getpid(),
                                born=_born(os.getpid()), begun=None)
            self._write()

    def first_step(self, resumed_from: str) -> None:
        """All ranks have made a step. What they have begun with is whole, and the older one was the right one."""
        if not self.path or self._has_stepped:
            return
        self._has_stepped = True
        if self._writes:
            self._record["aside"] = None
            if resumed_from:
                self._prove(os.path.realpath(resumed_from))
            self._write()
            _remove(self.path + ".raised")

    def all_have_saved(self) -> None:
        """All ranks have come past the save."""
        if self._ended:
            self._prove(self._ended)
            self._ended = None
            self._write()

    def begin(self, folder: str) -> None:
        """This save begins now, perhaps after an evaluation. One into a folder that exists proves nothing."""
        folder = os.path.realpath(folder)
        if self.path and self._writes and not os.path.lexists(folder):
            self._record["begun"] = folder
            self._write()

    def end(self, folder: str) -> None:
        folder = os.path.realpath(folder)
        if self.path and self._writes and self._record["begun"] == folder:
            self._record["begun"] = None
            self._ended = folder
            self._write()

    def failed(self) -> None:
        """The training has raised an exception. Before the first step, the older checkpoint may be the reason; an
        exception of the network comes from other ranks."""
        error = sys.exc_info()[1]
        if not self.path or self._has_stepped or not self._record["aside"] or not isinstance(error, Exception):
            return
        if not re.search("gloo|nccl|Dist(Network|Store|Backend)?Error", f"{type(error).__name__} {error}", re.I):
            _write(self.path + ".raised", {}, "the failed start")

    def done(self) -> None:
        """The training has ended by itself: the next run has a record of its own."""
        if self.path and self._writes:
            _remove(self.path)
            _remove(self.path + ".raised")

    def _prove(self, folder: str) -> None:
        files = _files(folder)
        if files:
            self._record.update(whole=folder, files=files)

    def _write(self) -> None:
        # An old record would call a save torn that has ended since.
        if self.path and not _write(self.path, self._record, "the record of checkpoints"):
            _remove(self.path)
            self.path = ""


def before_start() -> None:
    """In each worker, before its program runs: moves a torn folder away, or back."""
    path = _path()
    record = _read(path) if path else None
    if not record:
        return
    decision = decide(record, _look(path, record))
    if decision.refusal:
        _say(f"--set-aside-torn moves no checkpoint: {decision.refusal}")
    if decision.move and decision.back:
        _move_back(path, record, *decision.move)
    elif decision.move:
        _move_aside(path, record, *decision.move)


def _move_aside(path: str, record: dict[str, Any], torn: str, aside: str) -> None:
    # First, so that it is known how to take it back.
    if _write(path, {**record, "aside": [torn, aside]}, "the record of checkpoints") and _rename(torn, aside):
        _print(f"{torn} is torn: its save had begun and not ended. It is {aside} now, and {record['whole']} is the "
               "newest checkpoint")


def _move_back(path: str, record: dict[str, Any], aside: str, torn: str) -> None:
    # Last: a worker that reads of it finds the folder in its place.
    if _rename(aside, torn):
        _print(f"{record['whole']} fails as well, so {aside} is {torn} again")
        if _write(path, {**record, "aside": None}, "the record of checkpoints"):
            _remove(path + ".raised")


def _rename(source: str, target: str) -> bool:
    """False: another worker was faster, or it cannot be."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.ENOENT:
            _say(f"--set-aside-torn cannot move {source} to {target}: {os.strerror(error.errno or 0)}")
        return False
    return True


def _look(path: str, record: dict[str, Any]) -> Seen:
    torn = record["aside"][0] if record["aside"] else record["begun"] or ""
    aside = record["aside"][1] if record["aside"] else place_aside(torn)
    try:
        names = os.listdir(os.path.dirname(torn))
    except OSError:
        names = []
    whole, files = record["whole"], record["files"]
    return Seen(
        generation=this_generation(),
        alive=record["host"] == socket.gethostname() and record["born"] == _born(record["pid"]),
        kind=_kind(torn), kind_aside=_kind(aside), newest=newest_names(names),
        whole=bool(whole and files) and files.items() <= _files(whole).items(),
        raised=os.path.exists(path + ".raised"))


def _path() -> str:
    """Of the record of this run; "" without --set-aside-torn. The script may change its directory, so ddprun names the
    folder."""
    folder, key = os.environ.get(VARIABLE), os.environ.get("DDPRUN_RUN_KEY")
    return os.path.join(folder, f".ddprun-saves-{key}") if folder and key else ""


def _kind(path: str) -> str:
    try:
        what = os.lstat(path)
    except OSError:
        return GONE
    if not stat.S_ISDIR(what.st_mode):
        return LINK if stat.S_ISLNK(what.st_mode) else "a file"
    return FOLDER if what.st_uid == os.geteuid() else OTHERS


def _files(folder: str) -> dict[str, int]:
    """Their sizes; {} if there are none, or too many to look at."""
    found: dict[str, int] = {}
    try:
        for parent, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)
                found[os.path.relpath(path, folder)] = os.stat(path).st_size
            if len(found) > MOST_FILES:
                return {}
    except OSError:
        return {}
    return found


def _born(pid: int) -> int:
    """When a process of this host began; -1: there is none. A number may be used again."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return -1


def _read(path: str) -> dict[str, Any] | None:
    """None: there is none that is ours."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, encoding="utf-8") as file:
            value = json.load(file) if os.fstat(descriptor).st_uid == os.geteuid() else None
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) and value.keys() == empty().keys() else None


def _write(path: str, value: dict[str, Any], what: str) -> bool:
    """The whole file or nothing."""
    part = f"{path}.{os.environ.get('RANK', '0')}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(part, path)
    except OSError as error:
        _remove(part)
        _say(f"--set-aside-torn cannot write {what} to {path}: {os.strerror(error.errno or 0)}")
        return False
    return True


def _remove(path: str) -> None:
    """A file of ours."""
    try:
        os.unlink(path)
    except OSError:
        pass


def _say(line: str) -> None:
    """What all workers find in the same way."""
    if os.environ.get("RANK", "0") == "0":
        _print(line)


def _print(line: str) -> None:
    print("ddprun: " + line, file=sys.stderr, flush=True)
