#!/usr/bin/env python3
"""Looks for a text in the memory of a process, apart from the files that it maps. Prints "all" if a core file would have it,
"kept out" if it lies only in memory that core files leave out (MADV_DONTDUMP), else "none". Usage: PID FILE, whose first
line is the text."""
import sys

pid, path = sys.argv[1:]
with open(path, "rb") as file:
    text = file.readline().rstrip(b"\n")


def areas():
    """The mappings: first and last address, and whether core files leave it out."""
    with open(f"/proc/{pid}/smaps") as smaps:
        at = None
        for line in smaps:
            words = line.split()
            if words[0] == "VmFlags:":
                yield (*at, "dd" in words)
            elif "-" in words[0] and not words[0].endswith(":"):
                at = tuple(int(end, 16) for end in words[0].split("-"))


found = set()
with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
    for first, last, left_out in areas():
        try:
            memory.seek(first)
            piece = memory.read(last - first)
        except (OSError, OverflowError, ValueError):
            continue  # a guard page, or the kernel's own
        if text in piece:
            found.add("kept out" if left_out else "all")
print("all" if "all" in found else "kept out" if found else "none")
