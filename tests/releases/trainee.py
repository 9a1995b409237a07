"""A training that knows the module `ddprun`: it counts steps, writes a snapshot when asked, and stops when asked."""
import os
import time

import ddprun

rank = os.environ["RANK"]
step, saved, end = 0, None, time.monotonic() + 60
assert not ddprun.stop_requested() and ddprun.seconds_left() is None
while time.monotonic() < end and not ddprun.stop_requested():
    step += 1
    if ddprun.snapshot_requested():
        path = ddprun.snapshot_path()
        assert path
        if os.environ["LOCAL_RANK"] == "0":
            os.remove(path)
            saved = step
            ddprun.progress(step, snapshot=saved, snapshot_ms=7)
            print(f"snapshot at step {step}", flush=True)
    ddprun.progress(step, snapshot=saved)
    if step == 1:
        print(f"rank {rank} trains", flush=True)
    time.sleep(0.01)
left = ddprun.seconds_left()
print(f"rank {rank} stops, with {'no' if left is None else round(left)} seconds left", flush=True)
