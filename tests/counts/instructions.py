#!/usr/bin/env python3
"""Instructions of parsing, of the codecs, of an example's compute and of a leader with many nodes, counted by callgrind:
the same on every machine with the same compiler."""
import os
import re
import subprocess
import sys
from pathlib import Path

import limits

TESTS = Path(os.environ.get("BENCH_TESTS", limits.FILE.parents[2] / "build" / "tests"))
COUNTS = {"instructions_options": "options", "instructions_hostlist": "hostlist", "instructions_store": "store",
          "instructions_link": "link", "instructions_mlp": "mlp"}
TURNS = 20
# Of few nodes, and of so many that work for each of them that looks at all of them is a multiple of all other work.
FEW, MANY, BEATS = 200, 800, 10


def instructions(program, *words):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", TESTS / program,
                          *map(str, words)], capture_output=True, text=True, timeout=300)
    found = re.search(r"Collected *: *(\d+)", run.stderr)
    if run.returncode or not found:
        sys.exit(f"FAILED: {program} {words} ended with {run.returncode}: {run.stderr[-1000:]}")
    return int(found[1])


# What the programs need to begin and to end is in both numbers, and so in no difference.
def of_work(what):
    # A first turn may fill tables, so both have one.
    return (instructions("counted_work", what, 1 + TURNS) - instructions("counted_work", what, 1)) / TURNS


def of_crowd():
    """(of a node that joins, of one more beat of a node), both sides of the link together"""
    few, many, beating = (instructions("counted_crowd", nodes, beats)
                          for nodes, beats in ((FEW, 0), (MANY, 0), (FEW, BEATS)))
    return (many - few) / (MANY - FEW), (beating - few) / (FEW * BEATS)


def main():
    try:
        able = subprocess.run(["valgrind", "--tool=none", "/usr/bin/true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        able = False
    if not able:
        print("skipped: no valgrind that runs here")
        sys.exit(77)
    node, beat = of_crowd()
    counts = {name: of_work(what) for name, what in COUNTS.items()}
    counts |= {"instructions_node": node, "instructions_beat": beat}
    limits.check({name: round(count) for name, count in counts.items()})


if __name__ == "__main__":
    main()
