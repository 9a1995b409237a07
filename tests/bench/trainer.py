#!/usr/bin/env python3
"""The trainer library beside PyTorch: exec of the launcher to the first all-reduce done on 8 ranks; a snapshot's stall
beside memcpy, its background write beside dd oflag=direct, saving and loading beside torch.save and torch.load; what
overlap of backward and communication gains between two namespaces at 1 Gbit/s; where there is a GPU, a step with the
library beside one without. $BENCH_DISK is a folder on the disk (default: the temporary one); $PT_PYTHON a Python with
torch; $MB how large a snapshot is (default 512)."""
import json
import os
import subprocess
import tempfile
from pathlib import Path

import subjects
from report import Row, collect, main
from subjects import DDPRUN, PYTHON, command
from workplace import HERE, finish, folder, start, times

RANKS = 8
MB, QUICK_MB = int(os.environ.get("MB", "512")), 128
TOOL = os.environ.get("TRAINER_TOOL", str(HERE.parent.parent / "build" / "bin" / "trainer_tool"))
# The time at which each rank has its first result. torch's import is part of the measure here: a user waits for it.
WORKER = """
import os, sys, time
import torch, torch.distributed as dist
dist.init_process_group('gloo')
dist.all_reduce(torch.ones(1))
open(os.path.join(sys.argv[1], 'done.' + os.environ['RANK']), 'w').write('%d\\n' % time.monotonic_ns())
dist.destroy_process_group()
"""
# torch.save() and torch.load() of eight tensors, as many bytes as trainer_tool saves. Medians of five, in GB/s.
TORCH = """
import os, sys, time, torch
path, mb = sys.argv[1], int(sys.argv[2])
state = {f't{i}': torch.full((mb * 1048576 // 8 // 4,), float(i)) for i in range(8)}
saves, loads = [], []
for _ in range(5):
    begun = time.monotonic()
    with open(path, 'wb') as file:
        torch.save(state, file); file.flush(); os.fsync(file.fileno())
    saves.append(time.monotonic() - begun)
for _ in range(5):
    begun = time.monotonic()
    torch.load(path, weights_only=True)
    loads.append(time.monotonic() - begun)
bytes = mb * 1048576
print('{"save": %f, "load": %f}' % (bytes / sorted(saves)[2] / 1e9, bytes / sorted(loads)[2] / 1e9))
"""

# The same model as in `trainer_tool overlap`: eight layers of 409,600 floats (1.6 MB), of which each keeps the
# processor busy for 12.5 ms. Buckets of 3 MB give overlap; one bucket of 1000 MB is sent after the last layer.
OVERLAP = """
import json, sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
class Layer(torch.autograd.Function):
    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(weight)
        return x + 0
    @staticmethod
    def backward(context, grad):
        begun = time.monotonic()
        while time.monotonic() - begun < 0.0125: pass
        return grad, torch.zeros_like(context.saved_tensors[0])
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ParameterList(torch.zeros(409600) for _ in range(8))
    def forward(self, x):
        for weight in self.layers: x = Layer.apply(x, weight)
        return x
dist.init_process_group('gloo')
found = {}
for name, cap in (('overlapped', 3), ('late', 1000)):
    model = DistributedDataParallel(Model(), bucket_cap_mb=cap, gradient_as_bucket_view=True)
    steps = []
    for _ in range(15):
        loss = model(torch.ones(1, requires_grad=True)).sum()
        dist.barrier()
        begun = time.monotonic()
        loss.backward()
        steps.append(1000 * (time.monotonic() - begun))
        model.zero_grad()
    found[name] = sorted(steps)[7]
if dist.get_rank() == 0: open(sys.argv[1], 'w').write(json.dumps(found))
dist.barrier()
dist.destroy_process_group()
"""


CALLS = """
import json, sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group('gloo')
def median_ms(warm_up, turns, call):
    times = []
    for turn in range(warm_up + turns):
        dist.barrier()
        begun = time.monotonic()
        call()
        if turn >= warm_up: times.append(1000 * (time.monotonic() - begun))
    return sorted(times)[turns // 2]
found = {}
for name, size in (('26 MB', 26_000_000), ('1 MiB', 1 << 20)):
    values = torch.ones(size // 4)
    found[name] = median_ms(5, 40, lambda: dist.all_reduce(values))
net = torch.nn.Sequential(torch.nn.Linear(16, 65536), torch.nn.Tanh(), torch.nn.Linear(65536, 1))
model = DistributedDataParallel(net, gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
x, y = torch.full((4, 16), 0.5), torch.ones(4, 1)
def step():
    optimizer.zero_grad(set_to_none=False)
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
found['step'] = median_ms(5, 100, step)
if dist.get_rank() == 0: open(sys.argv[1], 'w').write(json.dumps(found))
dist.barrier()
dist.destroy_process_group()
"""


def calls(name):
    """Two ranks on this host: all-reduces, and steps of a network with 4.7 MB of gradients (ms)."""
    where = folder()
    (where / "worker.py").write_text(CALLS)
    worker = [TOOL, "calls"] if name == "ddprun" else [PYTHON, where / "worker.py"]
    env = dict(os.environ, GLOO_SOCKET_IFNAME="lo")
    if code := finish(start(command(name, 2, [*worker, where / "figures"]), env=env), 90):
        raise RuntimeError(f"exit code {code}")
    found = json.loads((where / "figures").read_text())
    return {"all-reduce of 26 MB (ms)": found["26 MB"], "all-reduce of 1 MiB (ms)": found["1 MiB"],
            "step with 4.7 MB of gradients (ms)": found["step"]}


class Link:
    """Two network namespaces with a link of 1 Gbit/s between them."""

    def __enter__(self):
        self.names = [f"bench{os.getpid()}{end}" for end in "ab"]
        for name in self.names:
            self.ip("netns", "add", name)
        one, two = self.names
        self.ip("link", "add", "end", "netns", one, "type", "veth", "peer", "name", "end", "netns", two)
        for number, name in enumerate(self.names, 1):
            self.ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "end")
            self.ip("-n", name, "link", "set", "end", "up")
            self.ip("-n", name, "link", "set", "lo", "up")
            # A loopback device is faster than any network, and overlap would gain nothing there. At 1 Gbit/s, 13 MB
            # take about as long as the 100 ms of backward.
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "end", "root", "tbf", "rate", "1gbit",
                            "burst", "128kb", "latency", "50ms"], check=True)
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name])

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)


def gain_of_overlap(name):
    """Per cent of a step that overlap saves, of two ranks whose communication takes about as long as their backward."""
    where = folder()
    (where / "worker.py").write_text(OVERLAP)
    agents = [DDPRUN, "--nnodes=2", "--nproc-per-node=1", "--rdzv-endpoint=10.77.0.1:29555", "--rdzv-id=bench",
              TOOL, "overlap", where / "figures"]
    # PyTorch's side runs without torchrun: its rendezvous would ask a name server that these namespaces do not reach.
    alone = [PYTHON, where / "worker.py", where / "figures"]
    with Link() as link:
        running = []
        for rank, end in enumerate(link.names):
            # Gloo must use the slow link and not the loopback device.
            env = dict(os.environ, GLOO_SOCKET_IFNAME="end")
            if name != "ddprun":
                env |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29556"}
            running.append(start(["ip", "netns", "exec", end, *(agents if name == "ddprun" else alone)], env=env))
        codes = [finish(one, 90) for one in running]
    if any(codes):
        raise RuntimeError(f"exit codes {codes}")
    # The gain is a ratio of two times of the same program, so the speed of the machine cancels out.
    found = json.loads((where / "figures").read_text())
    return {"(ms a step)": found["overlapped"], "late (ms a step)": found["late"],
            "gain (%)": 100 * (1 - found["overlapped"] / found["late"])}


def first_all_reduce(name):
    import time
    where = folder()
    (where / "worker.py").write_text(WORKER)
    # Each launcher runs its own library: ddprun with the trainer library, torchrun with PyTorch.
    work = [TOOL, "start", where / "done"] if name == "ddprun" else [PYTHON, where / "worker.py", where]
    begun = time.monotonic_ns()
    code = finish(start(command(name, RANKS, work), env=dict(os.environ, GLOO_SOCKET_IFNAME="lo")), 120)
    done = times(where, "done.*")
    if code or len(done) != RANKS:
        raise RuntimeError(f"exit code {code}, {len(done)} of {RANKS} ranks done")
    return (max(done) - begun) / 1e6


def on_disk():
    return tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DISK", "/var/tmp"))


def dd_direct(where, mb):
    """GB/s of dd in 8 MiB blocks past the cache, with an fsync, from memory."""
    import time
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as source:
        # The source lies in memory, so the disk is only written. Blocks go past the page cache, as in the library's
        # writer.
        source.truncate(mb << 20)
        subprocess.run(["dd", "if=/dev/zero", f"of={source.name}", "bs=8M", f"count={mb // 8}"], check=True,
                       capture_output=True)
        begun = time.monotonic()
        subprocess.run(["dd", f"if={source.name}", f"of={where}/dd", "bs=8M", "oflag=direct", "conv=fsync"], check=True,
                       capture_output=True)
        taken = time.monotonic() - begun
    os.unlink(f"{where}/dd")
    return (mb << 20) / taken / 1e9


def snapshots(repeats, mb):
    found = {}
    for _ in range(repeats):
        with on_disk() as where:
            run = subprocess.run([TOOL, "snapshot", where, str(mb)], check=True, capture_output=True)
            ours = json.loads(run.stdout)
        with on_disk() as where:
            ours["dd"] = dd_direct(where, mb)
            # A fresh folder for each, and by turns: an almost full disk or a busy minute hits all of them.
            words = [PYTHON, "-c", TORCH, Path(where) / "torch.pt", str(mb)]
            run = subprocess.run(words, capture_output=True, text=True)
            torch = json.loads(run.stdout) if run.returncode == 0 else {}
        for key, value in [*ours.items(), *((f"torch {key}", value) for key, value in torch.items())]:
            found.setdefault(key, []).append(value)
    # (figure, measure, subject, its peer). The first and the tenth snapshot are compared, because the first one must
    # not pay for memory.
    rows = [("memcpy", "stall in memory", "memcpy", "memcpy"), ("stall", "stall in memory", "ddprun", "memcpy"),
            ("stall_tenth", "first stall beside the tenth's", "tenth", "tenth"),
            ("stall_first", "first stall beside the tenth's", "ddprun", "tenth"),
            ("dd", "write to disk", "dd oflag=direct", "dd oflag=direct"),
            ("background", "write to disk", "ddprun", "dd oflag=direct"),
            ("torch save", "save and fsync", "torch", "torch"), ("save", "save and fsync", "ddprun", "torch"),
            # ddprun's loading verifies checksums.
            ("torch load", "load", "torch", "torch"), ("load", "load", "ddprun", "torch")]
    subjects.note(f"snapshots have {mb} MB")
    return [Row(f"snapshot, {measure} (GB/s)", subject, found[key], peer) for key, measure, subject, peer in rows
            if key in found]


def on_gpu(repeats):
    """The cost of the library at world 1; no row where there is no GPU."""
    found = []
    for _ in range(repeats):
        code = subprocess.run([TOOL, "gpu", "4096"], capture_output=True, text=True)
        if code.returncode:
            subjects.note(f"step on a GPU: not measured: {code.stderr.strip()}")
            return []
        found.append(json.loads(code.stdout))
    title = "step on one GPU, world 1 (ms)"
    return [Row(title, "ddprun", [one["with"] for one in found], "without"),
            Row(title, "without", [one["without"] for one in found], "without")]


def measure(options):
    if not Path(TOOL).exists():
        subjects.note(f"no {TOOL}: build the target trainer_tool")
        return []
    names = [name for name in ("torchrun", "ddprun") if name in options.subjects]
    rows = collect(f"first all-reduce done, {RANKS} ranks (ms)", names, options.repeats, first_all_reduce)
    rows += collect("2 ranks,", names, options.repeats, calls)
    rows += collect("overlap at 1 Gbit/s", names, options.repeats, gain_of_overlap)
    return rows + snapshots(options.repeats, QUICK_MB if options.quick else MB) + on_gpu(options.repeats)


if __name__ == "__main__":
    main(measure)
