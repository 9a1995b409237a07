"""A rank of a job in which one rank a generation dies, and the others print what they can read of it.

    events_worker.py FOLDER ROUNDS [deaf=RANK] [closed=RANK]

In each generation before ROUNDS another rank kills itself when all have come, with the time in FOLDER. The others write
into FOLDER/latencies how many milliseconds later they read of it, and end when they read of the stop. SIGTERM says
nothing to them, so that what they know comes from the events. A rank that is deaf never reads, and one that is closed
has no descriptor; both end by SIGTERM.
"""
import json
import os
import signal
import sys
import time
from pathlib import Path

folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
odd = dict(word.split("=") for word in sys.argv[3:])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
generation = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
may_die = [each for each in range(world) if str(each) not in odd.values()]
victim = may_die[generation % len(may_die)]
events = int(os.environ["DDPRUN_EVENTS_FD"])

if generation == rounds:
    sys.exit(0)
if odd.get("closed") == str(rank):
    os.close(events)
if str(rank) not in odd.values():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
(folder / f"here.{generation}.{rank}").touch()
if rank == victim:
    while not all((folder / f"here.{generation}.{each}").exists() for each in range(world)):
        time.sleep(0.002)
    time.sleep(0.03)  # they have come to read
    when = folder / f"died.{generation}"
    when.write_text(repr(time.time()))
    os.kill(os.getpid(), signal.SIGKILL)
if str(rank) in odd.values():
    signal.pause()
for text in os.fdopen(events):
    now = time.time()
    event = json.loads(text)
    assert event["generation"] == generation, event
    if event["event"] == "worker_lost":
        assert event["rank"] == victim and event["signal"] == "SIGKILL", event
        after = 1000 * (now - float((folder / f"died.{generation}").read_text()))
        with open(folder / "latencies", "a") as file:
            file.write(f"{generation} {rank} {after:.3f}\n")
    elif event["event"] == "stop":
        assert event["reason"] == "restart" and event["signal"] == "SIGTERM", event
        break
    else:
        sys.exit(f"nobody expects {event}")
else:
    sys.exit("the end came before the stop")
