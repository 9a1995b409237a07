#!/usr/bin/env python3
"""A lone worker at a terminal: it reads the keyboard, Ctrl-C is its own, and ends the job when it ends the worker."""
import os
import pty
import select
import signal
import sys
import time

ddprun = sys.argv[1]
PATIENCE = 20  # seconds


def at_terminal(script, keys, *options):
    """Runs `bash -c script` under ddprun at a terminal of its own, types each of `keys` when its word has been shown.
    Returns what was shown and the exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(ddprun, [ddprun, "--standalone", "--nproc-per-node=1", *options, "bash", "-c", script])
    shown, keys, give_up = "", list(keys), time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                data = os.read(terminal, 4096)
            except OSError:  # the last process at the terminal has gone
                break
            shown += data.decode()
        if keys and keys[0][0] in shown:
            os.write(terminal, keys.pop(0)[1])
    else:
        os.kill(pid, signal.SIGKILL)
        sys.exit(f"{script}: no end after {PATIENCE} s; shown: {shown}")
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def expect(story, script, keys, code, words, *options, absent=()):
    print(f"- {story}", flush=True)
    shown, got = at_terminal(script, keys, *options)
    if got != code or any(word not in shown for word in words) or any(word in shown for word in absent):
        sys.exit(f"FAILED: {story}: exit code {got}, not {code}, or not {words} in, or one of {absent} in:\n{shown}")


expect("the worker reads what is typed", "echo ready; read x; echo got $x", [("ready", b"hi\n")], 0, ["got hi"])
expect("its process group is the one in front",
       "python3 -c 'import os; print(os.tcgetpgrp(0) == os.getpgrp())'", [], 0, ["True"])
expect("a worker may take Ctrl-C as it likes", "trap 'echo heard; exit 0' INT; echo ready; sleep 100 & wait",
       [("ready", b"\x03")], 0, ["heard"])
expect("one that dies of it ends the job: no restart", "echo ready; exec sleep 100", [("ready", b"\x03")], 130,
       ["ready"], "--max-restarts=3", absent=["restart 1"])
# The workers listen to neither; keeper and workers have no terminal then, the keyboard's signals are ddprun's.
expect("a second Ctrl-C kills what does not listen", "trap '' INT TERM; echo ready$RANK; while :; do sleep 0.1; done",
       [("ready0", b""), ("ready1", b"\x03"), ("stopping", b"\x03")], 130, ["interrupted again"],
       "--nproc-per-node=2", "--shutdown-timeout=1000")
# Not bash, which ignores SIGQUIT until its exec.
expect("as does Ctrl-\\",
       "ulimit -c 0; exec python3 -c 'import time; print(\"ready\", flush=True); time.sleep(100)'", [("ready", b"\x1c")], 131, ["ready"],
       "--max-restarts=3", absent=["restart 1"])
