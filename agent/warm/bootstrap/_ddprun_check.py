"""For `ddprun --check`: imports what a server would import, and counts what that costs each cold worker.

The plan comes on standard input, as in a server's `import` packet. The answer is the last line of standard output:
"ddprun-warm", the verdict and its texts, or for "ready" the numbers of modules, of files that are read and of calls that
only look for files, and then pairs of what is left out and why; with tabs between them.
"""
import os
import sys

import _frozen_importlib_external as external
from _ddprun_preload import Preload, plan_of, wanted_of


def check():
    pieces = []
    while True:
        piece = os.read(0, 1 << 20)
        if not piece:
            break
        pieces.append(piece)
    plan = plan_of([os.fsdecode(text) for text in b"".join(pieces).split(b"\0")[:-1]])
    wanted = wanted_of(plan)
    before = set(sys.modules)
    counts = {"open": 0, "os.listdir": 0, "stat": 0}
    look = external._path_stat

    def counted(path):
        counts["stat"] += 1
        return look(path)

    def hear(event, _):
        if event in counts:
            counts[event] += 1

    external._path_stat = counted
    sys.addaudithook(hear)
    preload = Preload(plan)
    preload.add(wanted, False)
    files, calls = counts["open"], counts["stat"] + counts["os.listdir"]
    for name in set(sys.modules) - before:
        origin = getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) or ""
        files += origin.endswith(".so")  # the dynamic linker reads it
    verdict, texts = preload.verdict()
    if verdict != "cold":
        texts = [len(set(sys.modules) - before), files, calls, *(texts if verdict == "again" else [])]
        verdict = "ready"
    words = ["ddprun-warm", verdict, *(str(each).replace("\t", " ").replace("\n", " ") for each in texts)]
    os.write(1, ("\n" + "\t".join(words) + "\n").encode("utf-8", "surrogateescape"))
