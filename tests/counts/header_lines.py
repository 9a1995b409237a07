#!/usr/bin/env python3
"""Counts the lines after the preprocessor of each room's largest unit, against tests/data/header_lines.txt.

A build spends most of its time in headers, so these lines are what it costs, on each machine the same. A header that
needs less of others (a declaration, <nlohmann/json_fwd.hpp>, an include that moves into the .cc) lowers them.

    tests/counts/header_lines.py BUILD            checks a build folder with DDPRUN_UNITY; some 15 s of processor time
    tests/counts/header_lines.py BUILD --list     prints each room's lines, most first
    tests/counts/header_lines.py BUILD --rewrite  writes the limits anew
"""
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "data" / "header_lines.txt"
HEAD = """\
# The most lines that the largest unit of a room may have after the preprocessor: `room limit`. A change that needs more
# raises its limit in the same commit, and says why there. tests/counts/header_lines.py counts; --rewrite writes this.
"""
STEP = 5000  # limits are multiples of it, so that a room's own code may grow a little
ROOM = re.compile(r"CMakeFiles/ddprun_(\w+)\.dir/Unity/unity_\w+_cxx\.cxx$")


def room_of(file):
    """The room of a unit, None for other files. Not those of tests, whose headers are compiled beforehand."""
    found = ROOM.search(file)
    # libtorch's headers change with its version, and are there where it is.
    return found[1] if found and "/tests/" not in file and found[1] != "trainer_torch" else None


def preprocessor(command):
    """The command that prints what this command of a compiler compiles."""
    words = shlex.split(command)
    at = words.index("-o")
    return [word for word in words[:at] + words[at + 2:] if word != "-c"] + ["-E"]


def lines_of_rooms(build):
    """{room: lines of its largest unit}"""
    found = {}
    for unit in json.loads((build / "compile_commands.json").read_text()):
        if room := room_of(unit["file"]):
            text = subprocess.run(preprocessor(unit["command"]), cwd=unit["directory"], capture_output=True)
            if text.returncode:  # most often a generated header
                sys.exit(f"room {room}: {text.stderr.decode().splitlines()[0]}; build it first")
            found[room] = max(found.get(room, 0), text.stdout.count(b"\n"))
    return found


def parse(text):
    """{room: limit}"""
    return {room: int(limit) for room, limit in (line.split() for line in text.splitlines()
                                                 if line and not line.startswith("#"))}


def limit_for(lines):
    """The limit that --rewrite sets: with room for half a step at least."""
    return (lines + STEP // 2 + STEP - 1) // STEP * STEP


def verdict(room, lines, limit):
    """The complaint about a room, or None; lines or limit is None where there is none."""
    place = f"{room} in tests/data/header_lines.txt"
    if lines is None:
        return f"{place}: there is no such room; remove the line"
    counted = f"its largest unit has {lines:,} lines after the preprocessor"
    if limit is None:
        return f"{place} is missing: {counted}; add `{room} {limit_for(lines)}`"
    if lines > limit:
        return f"{place}: {counted}, more than {limit:,}: which header takes in what only its .cc needs? (g++ -E, -H)"
    if limit_for(lines) + STEP < limit:
        return f"{place}: {counted}; lower {limit:,} to {limit_for(lines):,}"
    return None


def main():
    lines = lines_of_rooms(Path(sys.argv[1]))
    if not lines:
        print(f"{sys.argv[1]} has no units of rooms: configure it with DDPRUN_UNITY=ON")
        return 1
    if sys.argv[2:] == ["--list"]:
        print("\n".join(f"{count:7} {room}" for room, count in sorted(lines.items(), key=lambda each: -each[1])))
        return 0
    if sys.argv[2:] == ["--rewrite"]:
        FILE.write_text(HEAD + "".join(f"{room} {limit_for(count)}\n" for room, count in sorted(lines.items())))
        return 0
    limits = parse(FILE.read_text())
    complaints = [line for room in sorted(lines.keys() | limits.keys())
                  if (line := verdict(room, lines.get(room), limits.get(room)))]
    print("\n".join(complaints or [f"{sum(lines.values()):,} lines in the largest units of {len(lines)} rooms"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
