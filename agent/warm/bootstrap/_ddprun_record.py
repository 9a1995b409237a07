"""Writes which modules a worker imports, and from which files, in the order of the requests.

One line for a module: its number, its name, and its file. A line is written when the module is
complete, so a package comes after what it imports itself. What fails is not written. The file is
opened for each piece of work, so that the worker has no descriptor more than usual. Imports are
written with a later import or at the end, so the last five milliseconds of them may be missing; the
server then lacks a few modules, and the workers import them themselves.
"""
import atexit
import os
import sys
import time
from _thread import allocate_lock

# Seconds between two writes.
_PAUSE = 0.005


class Recorder:
    """The first finder on sys.meta_path. It finds nothing."""

    def __init__(self, path):
        self._path = path
        self._pid = os.getpid()
        self._open = []  # (number, name) of imports that have begun
        self._count = 0
        self._written = 0.0
        self._lock = allocate_lock()

    def find_spec(self, name, path=None, target=None):
        # A fork of the worker has its own life.
        if os.getpid() != self._pid:
            return None
        self._count += 1
        self._open.append((self._count, name))
        if time.monotonic() - self._written > _PAUSE:
            self.write()
        return None

    def write(self):
        if os.getpid() != self._pid or not self._lock.acquire(False):
            return
        try:
            lines, still_open = [], []
            begun, self._open = self._open, []
            for number, name in begun:
                spec = getattr(sys.modules.get(name), "__spec__", None)
                # The last one may not be in sys.modules yet. Any other that is not there has failed.
                if spec is None and number != self._count:
                    continue
                if spec is None or getattr(spec, "_initializing", False):
                    still_open.append((number, name))
                else:
                    lines.append("%d\t%s\t%s\n" % (number, name, spec.origin or ""))
            self._open = still_open + self._open
            if lines:
                self._append("".join(lines).encode("utf-8", "surrogateescape"))
            self._written = time.monotonic()
        finally:
            self._lock.release()

    def _append(self, data):
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            os.write(file, data)
        except OSError:
            pass
        os.close(file)


def begin(path):
    recorder = Recorder(path)
    sys.meta_path.insert(0, recorder)
    atexit.register(recorder.write)
