"""Stands for the reader's own train.py: --epochs of DOCS_EPOCH seconds, progress, snapshots, a stop on request."""
import argparse
import os
import time

options = argparse.ArgumentParser()
options.add_argument("--epochs", type=int, default=3)
options.add_argument("--seed", type=int, default=0)
args, _ = options.parse_known_args()
rank, world, attempt = os.environ["RANK"], os.environ["WORLD_SIZE"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print(f"rank {rank} of {world}, attempt {attempt}, seed {args.seed}", flush=True)
progress = os.fdopen(int(os.environ["DDPRUN_PROGRESS_FD"]), "w", 1)
stop, snapshot = os.environ["DDPRUN_STOP_FILE"], os.environ["DDPRUN_SNAPSHOT_FILE"]
saved = 0
if attempt:
    args.epochs = 1  # a page shows a restart, not the training behind it
for epoch in range(1, args.epochs + 1):
    time.sleep(float(os.environ.get("DOCS_EPOCH", "0.1")))
    if os.path.exists(snapshot) and os.environ["LOCAL_RANK"] == "0":
        os.remove(snapshot)
        saved = epoch
    print(f"step={epoch} snapshot={saved}", file=progress)
    if os.path.exists(stop):
        break
print(f"rank {rank} is done", flush=True)
