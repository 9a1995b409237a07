#!/usr/bin/env python3
"""Counts the fixed sleeps of each folder of tests, against the limits `sleeps_FOLDER` of tests/data/limits.txt.

A fixed sleep is a wait of a length that the source gives, whatever happens meanwhile. It costs its time in every run
and is still too short on a loaded machine; wait_until (tests/e2e/common.sh) and run_until (tests/support/loop.h) wait
for a condition. A sleep that proves that something does not happen cannot have one, so it is short and gives its
reason.

Not counted: at most 0.1 s, the interval of a poll or a step of a pretended training; 60 s or more, a worker that the
test ends; and times that are in variables.

    tests/counts/sleeps.py          checks; --list prints each sleep
"""
import re
import sys
from collections import Counter

import limits

TESTS = limits.FILE.parents[1]
SHORT, LONG = 0.1, 60
LEFT_OUT = ("bench", "tools", "data")  # measurements, programs and golden files

NUMBER = r"([\d']*\.?[\d']+)"
UNITS = {"h": 3600, "hours": 3600, "min": 60, "minutes": 60, "s": 1, "seconds": 1, "ms": 1e-3, "milliseconds": 1e-3,
         "us": 1e-6, "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9}
IN_SHELL = re.compile(rf"\bsleep {NUMBER}\b")
IN_PYTHON = re.compile(rf"\bsleep\({NUMBER}\)")
IN_CPP = (
    (re.compile(rf"\busleep\({NUMBER}\)"), lambda found: number(found[1]) * 1e-6),
    (re.compile(rf"(?<!u)\bsleep\({NUMBER}\)"), lambda found: number(found[1])),
    (re.compile(rf"\bsleep_for\((?:std::)?(?:chrono::)?(\w+)[({{]{NUMBER}[)}}]"),
     lambda found: number(found[2]) * UNITS.get(found[1], 1)),
    (re.compile(rf"\bsleep_for\({NUMBER}([a-z]+)\)"), lambda found: number(found[1]) * UNITS.get(found[2], 1)),
)


def number(text):
    return float(text.replace("'", ""))


def seconds_in(kind, line):
    """The fixed sleeps of a line of a file: suffix of its name, line."""
    if kind in (".cc", ".h"):
        found = [length(match) for pattern, length in IN_CPP for match in pattern.finditer(line)]
    else:
        patterns = (IN_SHELL, IN_PYTHON)  # a script has programs in other languages
        found = [number(match[1]) for pattern in patterns for match in pattern.finditer(line)]
    return [each for each in found if SHORT < each < LONG]


def sleeps():
    """(path below tests, number of the line, its text) of each fixed sleep"""
    for path in sorted(TESTS.rglob("*")):
        place = path.relative_to(TESTS)
        if path.suffix not in (".sh", ".py", ".cc", ".h") or place.parts[0] in LEFT_OUT or place.name.startswith("sleeps"):
            continue
        for at, line in enumerate(path.read_text().splitlines(), 1):
            for _ in seconds_in(path.suffix, line):
                yield place, at, line.strip()


def verdict(folder, count, allowed):
    """The complaint about a folder, or None: its name, its fixed sleeps, how many it may have."""
    place = f"sleeps_{folder} in tests/data/limits.txt"
    if count > allowed:
        return (f"tests/{folder} has {count} fixed sleeps, more than the {allowed:g} of {place}: wait for a condition "
                "(tests/counts/sleeps.py --list prints them)")
    if count < allowed:
        return f"tests/{folder} has {count} fixed sleeps, fewer than the {allowed:g} of {place}: lower that number"
    return None


def main():
    found = list(sleeps())
    if sys.argv[1:] == ["--list"]:
        for place, at, line in found:
            print(f"tests/{place}:{at}: {line}")
        return 0
    counts = Counter(place.parts[0] for place, _, _ in found)
    allowed = limits.parse(limits.FILE.read_text())
    folders = counts.keys() | {name.removeprefix("sleeps_") for name in allowed if name.startswith("sleeps_")}
    complaints = [line for folder in sorted(folders)
                  if (line := verdict(folder, counts[folder], allowed.get(f"sleeps_{folder}", (0,))[0]))]
    print("\n".join(complaints or [f"{len(found)} fixed sleeps in tests"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
