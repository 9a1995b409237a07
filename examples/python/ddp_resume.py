"""DistributedDataParallel that resumes: snapshots, position in the data, a stop on request. The first script to copy.

    ddprun --standalone --nproc-per-node=2 --max-restarts=3 ddp_resume.py --snapshot /tmp/snapshot.pt

The numbered lines are all that distributed training adds. Interruptions do not change the result. The snapshot has the
number of samples that are done, so a job may also resume with another number of workers."""
import argparse, os, signal, time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

options = argparse.ArgumentParser()
options.add_argument("--snapshot", required=True)
options.add_argument("--steps", type=int, default=40)
options.add_argument("--crash-at-step", type=int, default=-1, help="in the first attempt, rank 1; to try the resume")
args = options.parse_args()

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")  # 1. meet
rank, world, local = dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")  # 2. a GPU for each worker
torch.manual_seed(0)
inputs = torch.randn(1024, 8)
data = torch.utils.data.TensorDataset(inputs, (inputs * torch.arange(8)).sum(1, keepdim=True))
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
step, done, saved = 0, 0, -1  # done: samples of all ranks, for epoch and position; saved: step of the newest snapshot
saving = 0.0  # milliseconds that snapshots have taken from training
if os.path.exists(args.snapshot):
    snapshot = torch.load(args.snapshot, map_location=device)
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    step, done, saved = snapshot["step"], snapshot["done"], snapshot["step"]
parallel = DistributedDataParallel(model)  # 3. gradients are averaged over all workers
if "DDPRUN_STOP_FILE" in os.environ:  # a stop comes as this file, too, and the worker ends after a last snapshot
    signal.signal(signal.SIGTERM, lambda *_: None)
progress = os.fdopen(int(os.environ["DDPRUN_PROGRESS_FD"]), "w", 1) if "DDPRUN_PROGRESS_FD" in os.environ else None
asked, loss = torch.zeros(2, device=device), torch.zeros(1)  # whether any rank is to stop, or to write a snapshot
stop_file, snapshot_file = os.environ.get("DDPRUN_STOP_FILE", ""), os.environ.get("DDPRUN_SNAPSHOT_FILE", "")

while step < args.steps and not asked[0]:
    if rank == 1 and step == args.crash_at_step and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0": os._exit(3)
    epoch, position = divmod(done, len(data))
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(epoch))
    x, y = data[order[(position + 16 * rank + torch.arange(16)) % len(data)]]  # 4. a share of the samples
    loss = torch.nn.functional.mse_loss(parallel(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step, done = step + 1, done + 16 * world
    asked[0], asked[1] = os.path.exists(stop_file), os.path.exists(snapshot_file)
    dist.all_reduce(asked, dist.ReduceOp.MAX)  # 5. all stop after the same step
    if asked[1] and local == 0 and os.path.exists(snapshot_file): os.remove(snapshot_file)  # it is being written
    if rank == 0 and (step % 10 == 0 or asked.any()):
        begun = time.monotonic()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "done": done}
        torch.save(state, args.snapshot + ".part")
        os.replace(args.snapshot + ".part", args.snapshot)  # atomic: a reader never finds an incomplete snapshot
        saved, saving = step, saving + 1000 * (time.monotonic() - begun)
    if progress:
        print(f"step={step} snapshot={saved} saving_ms={saving:.0f}", file=progress)  # for restarts and --hang-timeout
weights = sum(p.double().sum() for p in model.parameters()).item()
print(f"RESULT rank={rank} weights={weights:.12f} loss={loss.item():.6f}", flush=True)
dist.barrier()  # no rank destroys the group while another still uses it
dist.destroy_process_group()
