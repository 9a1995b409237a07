"""The files that a run writes, as its private copy shows them: when, how often, and whether a file was renamed into its
place or written in place. inotify reports names and writes, the copy which files have changed."""
from __future__ import annotations

import ctypes
import os
import re
import struct
from dataclasses import dataclass
from typing import Dict, List, Set, Tuple

from ddprun_rehearsal.private import PrivateCopy, libc

MODIFY, CLOSED, MOVED_FROM, MOVED_TO, CREATE, ISDIR, NONBLOCK = 2, 8, 0x40, 0x80, 0x100, 0x40000000, 0x800
NO_SNAPSHOT = re.compile(
    r"tfevents|\.(log|txt|csv|tsv|lock|pid|py|pyc|so|yaml|yml|html|md|out|err|prom)$|/(wandb|mlruns|__pycache__|"
    r"ddprun[^/]*|torchinductor[^/]*|torchelastic[^/]*|torch[^/]*cache[^/]*)/|/[^/]*\.cache/")
UNFINISHED = re.compile(r"(\.|_|-)(part|tmp|temp|partial|incomplete)\w*$|^\.", re.I)


@dataclass
class Save:
    """One file of a snapshot that was written. `how`: "renamed" into its place, or "in place"."""
    at: float
    path: str
    how: str
    size: int


class Watch:
    """One for each run. `look()` often."""

    def __init__(self, copy: PrivateCopy) -> None:
        self._copy = copy
        self._queue = libc.inotify_init1(NONBLOCK)
        self._folders: Dict[int, str] = {}
        self._watched: Set[str] = set()
        self._written: Set[str] = set()  # since they have their name
        self._known = copy.changed()
        self.temporary: Dict[str, None] = {}  # names of files that were renamed away, the newest last
        self.writes: List[Tuple[float, str]] = []  # each end of a write of one process, and each rename
        self.saves: List[Save] = []
        for place in copy.upper:
            self._add(place)

    def close(self) -> None:
        if self._queue >= 0:
            os.close(self._queue)
            self._queue = -1

    def _add(self, folder: str) -> None:
        if folder in self._watched or self._queue < 0:
            return
        number = libc.inotify_add_watch(self._queue, os.fsencode(folder),
                                         MODIFY | CLOSED | MOVED_FROM | MOVED_TO | CREATE)
        if number >= 0:
            self._watched.add(folder)
            self._folders[number] = folder

    def _names(self, at: float) -> None:
        while True:
            try:
                events = os.read(self._queue, 1 << 16)
            except OSError:
                return
            begin = 0
            while begin < len(events):
                number, mask, _, length = struct.unpack_from("iIII", events, begin)
                name = os.fsdecode(events[begin + 16:begin + 16 + length].rstrip(b"\0"))
                begin += 16 + length
                self._event(self._folders.get(number, "") + "/" + name, mask, at)

    def _event(self, path: str, mask: int, at: float) -> None:
        if mask & MOVED_FROM:
            self.temporary.pop(path, None)
            self.temporary[path] = None
        elif mask & (MOVED_TO | CREATE):  # the second also by link(2)
            self._written.discard(path)
        elif mask & MODIFY:
            self._written.add(path)
        if mask & (MOVED_TO | CREATE) and mask & ISDIR:
            self._add(path)
        if mask & (MOVED_TO | CLOSED) and not mask & ISDIR:
            self.writes.append((at, path))

    def look(self, at: float) -> None:
        """Sees what has been written since the last look."""
        now = self._copy.changed()
        self._names(at)  # afterwards: of what the copy shows, the name is known then
        for path in now:
            self._add(os.path.dirname(path))
        for path, version in now.items():
            before = self._known.get(path)
            if before == version or NO_SNAPSHOT.search(path) or UNFINISHED.search(os.path.basename(path)):
                continue
            how = "in place" if path in self._written else "renamed"
            last = next((each for each in reversed(self.saves) if each.path == path), None)
            if last and before and before[0] == version[0] and at - last.at < 0.1 and how == "in place":
                last.at, last.size = at, version[1]  # it is still being written
            else:
                self.saves.append(Save(at, path, how, version[1]))
        self._known = now
