#!/usr/bin/env python3
"""A lone worker at a terminal: it reads the keyboard, Ctrl-C is its own, and ends the job when it ends the worker; Ctrl-Z
stops the job, and the shell's fg and bg are for the worker, too."""
import os
import sys

from at_terminal import at_terminal

ddprun = sys.argv[1]


def expect(story, script, keys, code, words, *options, absent=()):
    expect_of(story, [ddprun, "--standalone", "--nproc-per-node=1", *options, "bash", "-c", script], keys, code, words, absent)


def expect_of(story, command, keys, code, words, absent=()):
    print(f"- {story}", flush=True)
    shown, got = at_terminal(command, keys)
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


# A shell with job control, and a worker that says when it goes on. Typed commands are shown, too: none has the words.
os.environ["PS1"] = "shell> "
os.environ["JOB"] = f"{ddprun} -q --standalone --nproc-per-node=1 python3 -c"
os.environ["READS"] = """
import os, signal, threading
# One write for a line: print() takes several at a terminal, and the two threads would tear each other's lines.
def say(line): os.write(1, (line + "\\n").encode())
# A thread hears it. A handler would not run if the stop came just before the read that input() waits in.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
def tell():
    while signal.sigwait({signal.SIGCONT}):
        say("worker goes on")
threading.Thread(target=tell, daemon=True).start()
say("worker ready")
say("worker got " + input())
"""
SHELL = ["bash", "--norc", "--noprofile", "-i"]
expect_of("Ctrl-Z stops the job, the shell is there, fg lets it go on at the keyboard",
          SHELL, [("shell>", b"$JOB \"$READS\"\n"), ("worker ready", b"\x1a"), ("Stopped", b"echo $((6 * 7))\n"), ("42", b"fg\n"),
                  ("worker goes on", b"hi\n"), ("worker got hi", b""), ("shell>", b"exit $?\n")], 0, ["worker got hi"])
expect_of("one that is started in the background leaves the terminal to the shell, until fg",
          SHELL, [("shell>", b"$JOB \"$READS\" &\n"), ("worker ready", b"until jobs | grep Stopp[e]d; do sleep 0.1; done\n"), ("Stopped", b"echo $((6 * 7))\n"), ("42", b"fg\n"),
                  ("worker goes on", b"hi\n"), ("worker got hi", b""), ("shell>", b"exit $?\n")], 0, ["worker got hi"])
expect("without a shell Ctrl-Z changes nothing", "exec python3 -c \"$READS\"",
       [("worker ready", b"\x1a"), ("worker goes on", b"hi\n")], 0, ["worker got hi"])
