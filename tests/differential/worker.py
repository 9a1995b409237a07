"""Says in a file of its rank what a worker of a case was given, and ends as the case asks.

The folder is $CASE_OUT; $CASE_DO says how to end: exit N, signal N, once N (exit N in the first attempt), wait; all but those of
the role $CASE_OF end well."""
import json
import os
import signal
import sys
import time

out = os.environ["CASE_OUT"]
seen = {"argv": sys.argv[1:], "cwd": os.getcwd(), "main": __name__, "env": dict(os.environ)}
# Lines in one piece, as the order of pieces of several workers is nobody's.
os.write(1, b"out of rank %s\n" % os.environ["RANK"].encode())
os.write(2, b"err of rank %s\n" % os.environ["RANK"].encode())
name = "{}.{}".format(os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"])
with open(os.path.join(out, "part." + name), "w") as file:
    json.dump(seen, file)
os.rename(os.path.join(out, "part." + name), os.path.join(out, "worker." + name))
todo, _, number = os.environ.get("CASE_DO", "exit 0").partition(" ")
if os.environ.get("CASE_OF", os.environ["ROLE_NAME"]) != os.environ["ROLE_NAME"]:
    todo, number = "exit", "0"
if todo == "wait":
    while True:
        time.sleep(1)
if todo == "exit" or os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    # One that fails ends the others: all have their say first, with $CASE_OF those of other nodes, too.
    all_told = int(os.environ["WORLD_SIZE" if "CASE_OF" in os.environ else "LOCAL_WORLD_SIZE"])
    told, give_up = "worker." + os.environ["TORCHELASTIC_RESTART_COUNT"] + ".", time.monotonic() + 30
    while sum(entry.startswith(told) for entry in os.listdir(out)) < all_told and time.monotonic() < give_up:
        time.sleep(0.01)
    if todo == "signal":
        os.kill(os.getpid(), int(number))
    sys.exit(int(number))
