"""Plays a person at a terminal."""
import os
import pty
import select
import signal
import sys
import time

PATIENCE = 20  # seconds


def at_terminal(command, keys):
    """Runs a command at a terminal of its own, types each of `keys` when its word has been shown since the last
    were typed. None types nothing, and what follows is looked for after the word; with b"" it may be before it.
    Returns what was shown and the exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    shown, seen, keys, give_up = "", 0, list(keys), time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                data = os.read(terminal, 4096)
            except OSError:  # the last process at the terminal has gone
                break
            shown += data.decode()
        if keys and keys[0][0] in shown[seen:]:
            word, typed = keys.pop(0)
            if typed != b"":
                seen = shown.index(word, seen) + len(word)
            if typed:
                os.write(terminal, typed)
    else:
        os.kill(pid, signal.SIGKILL)
        sys.exit(f"{command}: no end after {PATIENCE} s; shown: {shown}")
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
