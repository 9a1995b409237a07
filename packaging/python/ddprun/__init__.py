"""What a training script and ddprun tell each other. Without ddprun nothing is asked and nothing is told, so a script
runs unchanged under another launcher. No dependencies; from one thread at a time.

    import ddprun
    while step < steps and not ddprun.stop_requested():
        ...
        ddprun.progress(step, snapshot=saved)

events() has what happens to other workers: who died, which nodes are lost or new.

What one rank knows, another may learn some steps later. So let the ranks agree at the end of a step, for example with
an all_reduce, before all of them stop or write a snapshot."""

from __future__ import annotations

import json
import operator
import os
import select
import signal
import stat
import struct
import threading
import time
from typing import Any

__all__ = ["events", "progress", "seconds_left", "snapshot_path", "snapshot_requested", "stop_requested"]
__version__ = "@VERSION@"

_told = False  # SIGTERM has come
_listens = False
_events: tuple[int, Any] | None = None  # the process that reads them, and its end of ddprun's socket
_unread = b""  # of a line


def progress(step: int, snapshot: int | None = None, snapshot_ms: int | None = None,
             saving_ms: int | None = None) -> None:
    """Reports how far the training is: the step, the step of the newest complete snapshot, and, once it is complete,
    how many milliseconds saving it took. ddprun finds hangs with it (--hang-timeout), plans restarts, and knows how
    early a stop must be told. saving_ms is what all snapshots of this process have taken from its training so far; left
    out, each counts with its snapshot_ms. It never blocks: a line that ddprun has no room for is dropped. A number that
    is not whole is a TypeError, also where nobody listens."""
    line = f"step={_whole('step', step)}"
    for name, number in (("snapshot", snapshot), ("snapshot_ms", snapshot_ms), ("saving_ms", saving_ms)):
        if number is not None:
            line += f" {name}={_whole(name, number)}"
    descriptor = _progress_descriptor()
    if descriptor is None:
        return
    try:
        room = select.poll()
        room.register(descriptor, select.POLLOUT)
        if [event for _, event in room.poll(0) if event & select.POLLOUT]:
            os.write(descriptor, (line + "\n").encode())
    except OSError:
        pass  # the reader is gone; that is nothing to stop a training for


def stop_requested() -> bool:
    """Whether this worker has to stop: write a last snapshot and end. Cheap enough for each step. From the first call
    on, which should come from the main thread before the training, SIGTERM no longer ends the process but counts as a
    request; a handler of the script's own stays."""
    _listen()
    path = os.environ.get("DDPRUN_STOP_FILE")
    return _told or bool(path and os.path.exists(path))


def seconds_left() -> float | None:
    """Seconds until the workers are killed, at least 0; None while nobody asks them to stop, or nobody knows."""
    end = _read("DDPRUN_STOP_FILE").get("killed_at")
    return max(0.0, end - time.time()) if isinstance(end, (int, float)) else None


def snapshot_requested() -> bool:
    """Whether an operator asks for a snapshot while the training goes on (`ddpctl snapshot`). Whoever begins it removes
    the file snapshot_path(), and reports it with progress() when it is complete."""
    path = snapshot_path()
    return bool(path and os.path.exists(path))


def snapshot_path() -> str | None:
    """The file that exists while a snapshot is asked for, one for all workers of a node; None without ddprun."""
    return os.environ.get("DDPRUN_SNAPSHOT_FILE") or None


def events(wait: float = 0.0) -> list[dict[str, Any]]:
    """What has happened since the last call, the oldest first; [] if nothing has. Each is a dictionary: `event` is
    worker_lost, node_lost, node_joined, stop, snapshot_requested, or lost, with the number of events for which there
    was no room; the page "Events" of the documentation has their other fields. `wait`: for at most so many seconds, for the first one.
    Cheap enough for each step. A process that the worker has forked gets none."""
    global _unread
    end = _event_socket()
    if end is None:
        time.sleep(wait)
        return []
    came = select.poll()
    came.register(end, select.POLLIN)
    came.poll(wait * 1000)
    try:
        while piece := end.recv(1 << 16):
            _unread += piece
        _forget_events()  # ddprun is gone, and will end this process
    except BlockingIOError:
        pass
    except OSError:
        _forget_events()
    *lines, _unread = _unread.split(b"\n")
    return [json.loads(line) for line in lines]


def _whole(name: str, number: Any) -> int:
    """A number of NumPy or a tensor with one whole number counts, too."""
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(f"progress(): {name} is {number!r}; give a whole number, such as int({name})") from None


def _progress_descriptor() -> int | None:
    """ddprun's pipe. A process that the worker has started may have the variable and not the pipe: its own first file
    has the number then."""
    try:
        descriptor = int(os.environ["DDPRUN_PROGRESS_FD"])
        return descriptor if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else None
    except (KeyError, ValueError, OSError, OverflowError):
        return None


def _event_socket() -> Any:
    """ddprun's socket. A process that the worker has started may have the variable and not the socket: one of its own
    has the number then. A process that it has forked has the socket, and would take lines from the worker. What it
    starts from now on does not get it."""
    global _events
    if _events is not None:
        return _events[1] if _events[0] == os.getpid() else None
    import socket  # not before it is needed: it takes a millisecond
    _events = os.getpid(), None
    try:
        descriptor = int(os.environ["DDPRUN_EVENTS_FD"])
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return None
        end = socket.socket(fileno=os.dup(descriptor))
        _events = os.getpid(), end
        peer, = struct.unpack_from("i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if end.family != socket.AF_UNIX or end.type != socket.SOCK_STREAM or peer == os.getpid():
            _forget_events()
        else:
            end.setblocking(False)
            os.set_inheritable(descriptor, False)
    except (KeyError, ValueError, OSError, OverflowError):
        _forget_events()
    return _events[1]


def _forget_events() -> None:
    global _events
    if _events is not None and _events[1] is not None:
        _events[1].close()
    _events = os.getpid(), None


def _listen() -> None:
    global _listens
    if _listens or threading.current_thread() is not threading.main_thread():
        return
    _listens = True
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _hear)


def _hear(*_: Any) -> None:
    global _told
    _told = True


def _read(variable: str) -> dict[str, Any]:
    """The file that a variable names, {} if there is none. ddprun writes it whole."""
    try:
        with open(os.environ[variable], encoding="utf-8") as file:
            value = json.load(file)
    except (KeyError, OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
