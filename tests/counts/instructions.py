#!/usr/bin/env python3
"""Instructions of parsing, of the codecs and of an example's compute, counted by callgrind: the same on every machine
with the same compiler."""
import os
import re
import subprocess
import sys
from pathlib import Path

import limits

WORK = Path(os.environ.get("BENCH_TESTS", limits.FILE.parents[2] / "build" / "tests")) / "counted_work"
COUNTS = {"instructions_options": "options", "instructions_hostlist": "hostlist", "instructions_store": "store",
          "instructions_link": "link", "instructions_mlp": "mlp"}
TURNS = 20


def instructions(what, turns):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", WORK, what, str(turns)],
                         capture_output=True, text=True, timeout=300)
    found = re.search(r"Collected *: *(\d+)", run.stderr)
    if run.returncode or not found:
        sys.exit(f"FAILED: counted_work {what} ended with {run.returncode}: {run.stderr[-1000:]}")
    return int(found[1])


def main():
    try:
        able = subprocess.run(["valgrind", "--tool=none", "/usr/bin/true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        able = False
    if not able:
        print("skipped: no valgrind that runs here")
        sys.exit(77)
    # What the program needs to begin and to end is in both numbers, and so in no difference. A first turn may fill
    # tables, so both have one.
    limits.check({name: round((instructions(what, 1 + TURNS) - instructions(what, 1)) / TURNS)
                  for name, what in COUNTS.items()})


if __name__ == "__main__":
    main()
