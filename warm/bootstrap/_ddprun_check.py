"""For `ddprun --check`: imports what a server would import for this script, and counts what that costs each cold
worker.

The plan comes on standard input, as in a server's `import` packet. The answer is the last line of standard output:
"ddprun-warm" and "cold" with the reason, or "ready" with the numbers of modules, of files that are read and of calls
that only look for files; with tabs between them.
"""
import os
import sys

import _frozen_importlib_external as external
from _ddprun_begin import Begin
from _ddprun_preload import Preload
from _ddprun_script import path_of
from _ddprun_serve import plan_of, records_of


def check():
    pieces = []
    while True:
        piece = os.read(0, 1 << 20)
        if not piece:
            break
        pieces.append(piece)
    plan = plan_of([os.fsdecode(text) for text in b"".join(pieces).split(b"\0")[:-1]])
    records = records_of(plan)
    sys.path[:0] = path_of(plan)
    counts = {"open": 0, "os.listdir": 0, "stat": 0}
    look = external._path_stat

    def counted(path):
        counts["stat"] += 1
        return look(path)

    def hear(event, _):
        if event in counts:
            counts[event] += 1

    preload = Preload(Begin(), set(plan["rank"]), lambda: None)
    external._path_stat = counted
    sys.addaudithook(hear)
    why = preload.add(records)
    files, calls = counts["open"], counts["stat"] + counts["os.listdir"]
    modules = [module for group in preload.groups for module in group.modules.values()]
    for module in modules:
        origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
        files += origin.endswith(".so")  # the dynamic linker reads it
    words = ["ddprun-warm", *(["cold", why] if why else ["ready", len(modules), files, calls])]
    words = [str(each).replace("\t", " ").replace("\n", " ") for each in words]
    os.write(1, ("\n" + "\t".join(words) + "\n").encode("utf-8", "surrogateescape"))
