"""The limits of tests/data/limits.txt: `name limit  # what`, one a line."""
import re
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "data" / "limits.txt"
# Less than this share of a limit: then the limit no longer guards anything.
LOOSE = 0.7


def parse(text):
    """{name: (limit, what)}; ValueError with the line's number."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"([a-z][a-z0-9_]*) +(\d+(?:\.\d+)?) +# (\S.*)", line)
        if not match:
            raise ValueError(f"line {number} is not `name limit  # what`: {line}")
        if match[1] in found:
            raise ValueError(f"line {number} has {match[1]} again")
        found[match[1]] = (float(match[2]), match[3])
    return found


def verdict(name, value, limits):
    """(one line for people, whether the count is within its limit)"""
    limit, what = limits[name]
    number, most = (f"{each:,.10g}" for each in (value, limit))
    place = f"{name} in tests/data/limits.txt"
    if value > limit:
        return f"FAILED: {what}: {number}, more than the limit of {most} ({place})", False
    loose = ", which could be lower" if value < LOOSE * limit else ""
    return f"{what}: {number}, at most {most}{loose}", True


def check(counts):
    """Prints a line for each {name: count}; ends the program with 1 if one is over its limit."""
    limits = parse(FILE.read_text())
    lines = [verdict(name, value, limits) for name, value in counts.items()]
    for line, _ in lines:
        print(line)
    sys.exit(0 if all(within for _, within in lines) else 1)
