#!/usr/bin/env python3
"""At a terminal a line that several ranks print is shown once (--collapse=auto): warnings, tracebacks, colours, bars and
prompts; not by the name torchrun, not in files, and nothing is lost."""
import os
import re
import sys
import tempfile

from test_terminal import check, play, rows

ddprun = sys.argv[1]
BEGIN = """
import os, sys, time, warnings
rank, folder = int(os.environ["RANK"]), sys.argv[1]
def meet(name):
    open("%s/%s.%d" % (folder, name, rank), "w").close()
    end = time.monotonic() + 60
    while sum(each.startswith(name + ".") for each in os.listdir(folder)) < int(os.environ["WORLD_SIZE"]):
        if time.monotonic() > end: sys.exit("nobody came")
        time.sleep(0.001)
"""


def shown_by(script, *options, workers=4, program=ddprun, steps=()):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--standalone", f"--nproc-per-node={workers}", "--max-restarts=0", *options, "--no-python",
                   sys.executable, "-c", BEGIN + script, folder]
        return play(command, steps)


def expand(shown, workers=4):
    """What each rank has printed: {local rank: lines}."""
    lines = {rank: [] for rank in range(workers)}
    for row in rows(shown):
        found = re.match(r"\[default( all but )?([0-9,-]+)\]:(.*)", row)
        if found is None:
            continue
        ranks = set()
        for part in found[2].split(","):
            first, _, last = part.partition("-")
            ranks |= set(range(int(first), int(last or first) + 1))
        for rank in set(range(workers)) - ranks if found[1] else ranks:
            own = f"[rank{rank}]: " if len(ranks) > 1 or found[1] else "[rank*]: "
            lines[rank].append(found[3].replace("[rank*]: ", own, 1).rstrip())
    return lines


FAILURE = """
meet("begin")
warnings.warn("deprecated")
def train(): raise ValueError("rank %d" % rank if rank == 2 else "all")
try: train()
except ValueError:
    import traceback
    sys.stderr.write("".join("[rank%d]: %s\\n" % (rank, line) for line in traceback.format_exc().splitlines()))
meet("end")
"""


def is_folded(shown):
    labelled = [row for row in rows(shown) if row.startswith("[default")]
    wanted = (r"\[default0-3\]:.*UserWarning: deprecated", r"\[default0-3\]:\[rank\*\]: Traceback",
              r"\[default2\]:\[rank2\]: ValueError: rank 2", r"\[default0-1,3\]:\[rank\*\]: ValueError: all")
    return len(labelled) == 6 and all(any(re.match(each, row) for row in labelled) for each in wanted)


# A busy machine may hold a rank up for longer than lines wait for it: then it is shown by itself.
for _ in range(50):
    shown, code = shown_by(FAILURE, "-q")
    for rank, lines in expand(shown).items():
        if code != 0 or len(lines) != 5 or not all(line.startswith(f"[rank{rank}]: ") for line in lines[1:]):
            check(f"rank {rank}'s lines can be told", False, shown)
    if is_folded(shown):
        break
check("four ranks' warning and traceback are shown once, and the rank that differs in full", is_folded(shown), shown)

SEVERAL = """
for i in range(200): print("own %d %d" % (rank, i) if i % 7 == rank else "line %d" % (i % 5), flush=i % 3 == 0)
"""
shown, code = shown_by(SEVERAL, "-q")
wanted = {rank: [f"own {rank} {i}" if i % 7 == rank else f"line {i % 5}" for i in range(200)] for rank in range(4)}
check("each rank's lines are all there, in their order", code == 0 and expand(shown) == wanted, shown)

shown, code = shown_by(SEVERAL, "-q", "--collapse=off")
check("--collapse=off shows each line by itself", code == 0 and expand(shown) == wanted
      and not re.search(r"\[default[0-9]+[-,]", shown), shown)

with tempfile.TemporaryDirectory() as folder:
    name = os.path.join(folder, "torchrun")
    os.symlink(os.path.realpath(ddprun), name)
    shown, code = shown_by("meet('a'); print('equal'); meet('b')", program=name)
check("torchrun shows each line", code == 0 and len(re.findall("^equal", shown, re.MULTILINE)) == 4, shown)

shown, code = shown_by("meet('a'); print('equal'); meet('b')", "-q", "--tee=1")
check("a stream that also goes to a file keeps each line", code == 0
      and len(re.findall("equal", shown)) == 4, shown)

BAR = """
meet("a")
print("before", flush=True)
meet("b")
if rank == 0:
    for i in range(5):
        sys.stdout.write("\\r%d %%" % (20 * i)); sys.stdout.flush(); time.sleep(0.02)
    print("\\r100 %")
print("after")
"""
shown, code = shown_by(BAR, "-q")
found = expand(shown)
check("a bar passes, between the lines before and after it", code == 0 and found[0] == ["before", "100 %", "after"]
      and all(found[rank] == ["before", "after"] for rank in (1, 2, 3)), shown)

PROMPT = """
meet("a")
if rank == 1:
    sys.stdout.write("name: "); sys.stdout.flush()
    end = time.monotonic() + 60
    while not os.path.exists(folder + "/answer") and time.monotonic() < end: time.sleep(0.01)
    print("given")
"""
with tempfile.TemporaryDirectory() as folder:
    command = [ddprun, "-q", "--standalone", "--nproc-per-node=2", "--no-python", sys.executable, "-c", BEGIN + PROMPT,
               folder]
    shown, code = play(command, [(lambda seen: b"[default1]:name: " in seen,
                                  lambda _: open(folder + "/answer", "w").close())])
check("a prompt is shown without its end", code == 0 and "[default1]:name: given" in rows(shown), shown)

shown, code = shown_by("meet('a'); print('the last line'); sys.stdout.flush(); os._exit(3 if rank == 1 else 0)")
check("what ddprun says of a failure comes after the lines of the rank", code == 3
      and 0 < shown.find(":the last line") < shown.find("exited with 3"), shown)
