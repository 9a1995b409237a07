#!/usr/bin/env python3
"""Several workers at one terminal: the one that reads has the keyboard, others that read wait and are named, and who
leaves a debugger ends the job."""
import os
import sys
import tempfile

from at_terminal import at_terminal

ddprun = sys.argv[1]
SHELL = ["bash", "--norc", "--noprofile", "-i"]
os.environ["PS1"] = "shell> "


def job(script, *options, workers=2):
    return [ddprun, "--standalone", f"--nproc-per-node={workers}", "--collapse=off", *options, "--no-python",
            "python3", "-c", script]


def expect(story, command, keys, code, words, absent=()):
    print(f"- {story}", flush=True)
    shown, got = at_terminal(command, keys)
    if got != code or any(word not in shown for word in words) or any(word in shown for word in absent):
        sys.exit(f"FAILED: {story}: exit code {got}, not {code}, or not {words} in, or one of {absent} in:\n{shown}")
    return shown


LINE = """
import os, sys
print("ready", flush=True)
line = sys.stdin.readline()
print("got " + line.strip(), flush=True)
"""
ONE = LINE.replace("line =", "line = os.environ['RANK'] == '1' and").replace("line.", "str(line).")
expect("the rank that reads has the keyboard, and is named", job(ONE), [("rank 1 has the keyboard", b"hi\n")], 0,
       ["[default1]:got hi", "[default0]:got False"], absent=["wait"])
expect("two that read get it by turns", job(LINE),
       [("waits for it", b"first\n"), ("got first", None), ("has the keyboard", b"second\n")], 0,
       ["got first", "got second", "rank 0", "rank 1"])
expect("an end of input is for one of them", job("import sys; print('read %r' % sys.stdin.read())"),
       [("waits for it", b"one\n\x04"), ("read 'one", None), ("has the keyboard", b"two\n\x04")], 0,
       ["read 'one\\n'", "read 'two\\n'"])
expect("without labels a line says whose the prompt is", job(ONE, "--no-label"),
       [("rank 1 has the keyboard", b"hi\n")], 0, ["got hi"])

# Line editors switch the echo off. The next one must not take that for the usual state.
PDB = "import os\nx = 40 + int(os.environ['RANK'])\nbreakpoint()\nprint('after', x, flush=True)"
with tempfile.TemporaryDirectory() as folder:
    script = f"{folder}/debug.py"
    with open(script, "w") as file:
        file.write(PDB)

    def debug(*options):
        return [ddprun, "--standalone", "--nproc-per-node=2", "--collapse=off", *options, "--no-python", "python3", script]

    shown = expect("each rank can be asked in its debugger",
                   debug(), [("waits for it", b"p x + 1\n"), ("]:4", None), ("(Pdb)", b"c\n"), ("after", None),
                             ("has the keyboard", b"p x + 1\n"), ("]:4", None), ("(Pdb)", b"c\n")], 0,
                   ["[default0]:41", "[default1]:42", "after 40", "after 41"])
    if shown.count("p x + 1") < 2:
        sys.exit(f"FAILED: what is typed is shown for each rank:\n{shown}")
    for workers in (1, 2):
        expect(f"leaving the debugger ends the job with one line, {workers} of {workers}",
               debug("--max-restarts=3", f"--nproc-per-node={workers}"), [("(Pdb)", b"q\n")], 1,
               ["ended in its debugger (BdbQuit)"], absent=["restart 1", "Root Cause"])

expect("Ctrl-C is for the rank that reads, and ends the job if the rank dies of it",
       job(ONE.replace("line = ", "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); line = "),
           "--max-restarts=3"), [("rank 1 has the keyboard", b"\x03")], 130, [], absent=["restart 1"])
FREE = """
import time
while os.tcgetpgrp(0) == os.getpgrp(): time.sleep(0.05)
if os.environ["RANK"] == "1": print("free", flush=True)
time.sleep(100)
"""
expect("when the rank reads no more, Ctrl-C is for the job", job(ONE + FREE),
       [("rank 1 has the keyboard", b"hi\n"), ("free", b"\x03")], 130, ["stopping"])
expect("one that waits for the keyboard hears a stop", job("""
import os, signal, sys
def stop(*_): print("told to stop", flush=True); os._exit(0)
signal.signal(signal.SIGTERM, stop)
sys.stdin.readline()
sys.exit(3)
""", "--max-restarts=0"), [("waits for it", b"\n")], 3, ["told to stop"])
os.environ["READ"] = LINE
os.environ["JOB"] = f"{ddprun} --standalone --nproc-per-node=2 --no-python python3 -c"
expect("in the background nobody takes what is typed for the shell, until fg",
       SHELL, [("shell>", b"$JOB \"$READ\" &\n"), ("in the background: fg", b"echo $((6 * 7))\n"), ("42", b"fg\n"),
               ("waits for it", b"one\n"), ("got one", None), ("has the keyboard", b"two\n"), ("got two", None),
               ("shell>", b"exit $?\n")], 0, ["got one", "got two"])
expect("without a terminal nothing changes", ["bash", "-c", '"$@" </dev/null', "bash", *job(LINE)], [], 0,
       ["[default0]:got", "[default1]:got"], absent=["keyboard"])
