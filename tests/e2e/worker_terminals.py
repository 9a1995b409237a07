#!/usr/bin/env python3
"""Where ddprun prints to a terminal, its workers do, too (--pty=auto): size, two streams, labels, bars, Ctrl-S, and
the last words of a worker. What a file or a pipe gets stays as it is."""
import os
import re
import signal
import sys
import tempfile
import time

from test_terminal import PATIENCE, WIDTH, check, play, resize, rows

ddprun = sys.argv[1]
SIZES = """
import os, sys
def width(fd):
    try: return os.get_terminal_size(fd).columns
    except OSError: return "none"
print("widths", width(1), width(2), "same" if os.fstat(1).st_rdev == os.fstat(2).st_rdev else "two")
try: os.tcgetpgrp(1)
except OSError: print("no controlling terminal")
"""


def job(script, *options, workers=2):
    return [ddprun, "-q", "--standalone", f"--nproc-per-node={workers}", "--max-restarts=0", "--collapse=off",
            *options, "--no-python", "python3", "-c", script]


# A row that is erased and drawn again is in `shown` twice.
def both_ready(shown):
    return {row for row in rows(shown.decode()) if row.endswith("ready")} == {"[default0]:ready", "[default1]:ready"}


shown, code = play(job(SIZES, workers=1))
check("a lone worker has terminals as wide as ddprun's", "widths 100 100 two" in shown and code == 0, shown)
shown, code = play(job(SIZES))
check("with a label they are narrower by it", all(f"[default{r}]:widths 89 89 two" in shown for r in (0, 1)), shown)
check("they are nobody's controlling terminal", shown.count("no controlling terminal\r\n") == 2, shown)
shown, code = play(job(SIZES, "--pty=off"))
check("--pty=off: pipes", shown.count("widths none none") == 2, shown)
with tempfile.TemporaryDirectory() as folder:
    shown, code = play(job(SIZES, "--tee=1", f"--log-dir={folder}"))
    check("a stream that also goes to a file is a pipe", shown.count("widths none 89") == 2, shown)
shown, code = play(["bash", "-c", '"$@" | cat', "bash", *job(SIZES)])
check("a pipe is a pipe, the other stream has its terminal", shown.count("widths none 89") == 2, shown)

shown, code = play(job("import os; os.write(1, b'x' * 7000 + b'last words'); os._exit(0)"))
check("what a worker has printed before its end is read", shown.count("x" * 7000 + "last words\r\n") == 2, shown)
shown, code = play(job("print('one\\ntwo')", workers=1))
check("a newline stays one", shown.count("one\r\ntwo\r\n") == 1, shown)

BAR = """
import os, sys
for i in range(20):
    sys.stderr.write("\\r%d%% of rank %s" % (i * 5 + 5, os.environ["RANK"]))
    sys.stderr.flush()
    if i % 5 == 0: print("line", i, flush=True)
sys.stderr.write("\\n")
"""
shown, code = play(job(BAR))
seen = sorted(row for row in rows(shown) if row)
want = sorted(f"[default{r}]:{text}" for r in (0, 1) for text in (f"100% of rank {r}", "line 0", "line 5", "line 10",
                                                                      "line 15"))
check("bars of two ranks are bars, lines beside them are whole", seen == want, shown)

TORN = """
import sys
for i in range(300): sys.stdout.write("ab"); sys.stdout.flush(); sys.stdout.write("cd\\n"); sys.stdout.flush()
"""
shown, code = play(job(TORN, "--no-label"))
check("without labels lines are whole", [row for row in rows(shown) if row] == ["abcd"] * 600, shown)

NARROW = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
print("ready", flush=True)
while os.get_terminal_size(1).columns != 69: signal.sigwait({signal.SIGWINCH})
print("narrow", flush=True)
"""
shown, code = play(job(NARROW), [(both_ready, lambda terminal: resize(terminal, 80))])
check("workers hear of a new size", sum(row.endswith("narrow") for row in rows(shown)) == 2, shown)

with tempfile.TemporaryDirectory() as folder:
    FLOOD = f"""
import os, sys, time
print("ready", flush=True)
while not os.path.exists("{folder}/go"): time.sleep(0.01)
for i in range(10000): print("x" * 60)
sys.stdout.flush()
open("{folder}/" + os.environ["RANK"], "w").close()
"""

    # The workers look for `go` every 10 ms: the terminal has stopped by then. Were it not so, the story would only
    # prove less.
    def stop(terminal):
        os.write(terminal, b"\x13")
        open(f"{folder}/go", "w").close()

    done = [lambda shown: os.path.exists(f"{folder}/0") and os.path.exists(f"{folder}/1"),
            lambda terminal: os.write(terminal, b"\x11")]
    shown, code = play(job(FLOOD), [(both_ready, stop), done])
    check("Ctrl-S holds up no worker, and nothing is lost",
          sum(row.endswith("x" * 60) for row in rows(shown)) == 20000 and code == 0, shown[:1000])
