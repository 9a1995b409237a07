"""A terminal of a test's own: plays a command at it, and tells what it shows."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = 60  # seconds
WIDTH = 100


def resize(terminal, width):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))


def play(command, steps=()):
    """Runs a command at a terminal. Each of `steps` is a condition on what was shown, and what to do then. Returns the
    bytes shown and the exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        resize(0, WIDTH)
        os.execvp(command[0], command)
    shown, steps, give_up = b"", list(steps), time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
        while steps and steps[0][0](shown):
            steps.pop(0)[1](terminal)
    else:
        os.kill(pid, signal.SIGKILL)
        sys.exit(f"{command}: no end after {PATIENCE} s; shown: {shown!r}")
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check(story, good, shown):
    print(f"- {story}", flush=True)
    if not good:
        sys.exit(f"FAILED: {story}; shown: {shown!r}")


def rows(shown):
    """What a terminal would show."""
    rows, at = [""], 0
    for part in re.findall("\x1b\\[0m|\x1b\\[2K|\n|\r|[^\x1b\n\r]+", shown):
        if part == "\x1b[2K":
            rows[-1] = ""
        elif part == "\n":
            rows.append("")
        if part in "\r\n":
            at = 0
        elif part[0] != "\x1b":
            rows[-1] = rows[-1].ljust(at)[:at] + part + rows[-1][at + len(part):]
            at += len(part)
    return rows
