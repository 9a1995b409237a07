"""The job of a soak: three nodes with one worker each, which are started again when they end, and what can happen to
them. As root each node is a host of its own, a network namespace on one bridge; else all are on loopback."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from soak_rules import NODES

ROOT = Path(__file__).resolve().parents[2]
MARK = "DDPRUN_SOAK_MARK"
LEASE = 3  # seconds
FOREVER = 10**9  # steps


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Hosts:
    """Network namespaces with a bridge between them, or nothing but loopback."""

    def __init__(self):
        self.names = [f"soak{os.getpid()}-{node}" for node in range(NODES)]
        self.bridge = f"soak{os.getpid()}-b"
        self.real = os.geteuid() == 0 and shutil.which("ip") is not None and self.ip("netns", "add", self.bridge)
        if self.real:
            self.ip("-n", self.bridge, "link", "add", "hosts", "type", "bridge", "forward_delay", "0")
            self.ip("-n", self.bridge, "link", "set", "hosts", "up")
        self.port = 29531 if self.real else free_port()
        for node, name in enumerate(self.names if self.real else []):
            self.ip("netns", "add", name)
            self.ip("-n", self.bridge, "link", "add", f"n{node}", "type", "veth", "peer", "name", "eth0", "netns", name)
            self.ip("-n", self.bridge, "link", "set", f"n{node}", "master", "hosts", "up")
            self.ip("-n", name, "link", "set", "lo", "up")
            self.ip("-n", name, "addr", "add", f"{self.address(node)}/24", "dev", "eth0")
            self.ip("-n", name, "link", "set", "eth0", "up")

    @staticmethod
    def ip(*words):
        return subprocess.run(["ip", *words], capture_output=True).returncode == 0

    def address(self, node):
        return f"10.79.1.{node + 1}" if self.real else "127.0.0.1"

    def enter(self, node):
        return ["ip", "netns", "exec", self.names[node]] if self.real else []

    def plug(self, node, there):
        self.ip("-n", self.bridge, "link", "set", f"n{node}", "up" if there else "down")

    def remove(self):
        for name in [*self.names, self.bridge] if self.real else []:
            self.ip("netns", "del", name)


class Train:
    """examples/train: 20 ms a step, a snapshot each ten steps."""

    def __init__(self, binaries, folder):
        self.program, self.snapshots = binaries / "train", folder / "snapshots"

    def command(self, snapshots=None, steps=FOREVER, step_ms=20, every=10):
        return [self.program, "--steps", steps, "--snapshot-every", every, "--snapshot-dir",
                snapshots or self.snapshots, "--step-time-ms", step_ms, "--log-every", 1000, "--timeout", 60]

    def reference(self, snapshots, steps):
        """An undisturbed run, as fast as it goes."""
        return self.command(snapshots, steps, 0, 10**6)

    def step(self):
        """The step of the newest snapshot."""
        found = [re.match(r"snapshot-(\d+)-g", path.name) for path in self.snapshots.glob("snapshot-*.json")]
        return max((int(match[1]) for match in found if match), default=0)

    progress = step
    result = re.compile(r"checksum=\S+")


class PyTorch:
    """examples/python/ddp_resume.py, as fast as it goes, a snapshot each ten steps."""

    def __init__(self, python, folder):
        self.python, self.snapshots = python, folder / "snapshot.pt"

    def command(self, snapshots=None, steps=FOREVER):
        return [f"--python={self.python}", ROOT / "examples/python/ddp_resume.py", "--steps", steps, "--snapshot",
                snapshots or self.snapshots]

    reference = command

    def step(self):
        if not self.snapshots.exists():
            return 0
        script = "import sys, torch; print(torch.load(sys.argv[1], weights_only=True)['step'])"
        return int(subprocess.check_output([self.python, "-c", script, self.snapshots]))

    def progress(self):
        return self.snapshots.stat().st_mtime_ns if self.snapshots.exists() else 0

    result = re.compile(r"weights=\S+")


class Job:
    def __init__(self, binaries, folder, training, hosts):
        self.ddprun, self.folder, self.training, self.hosts = binaries / "ddprun", folder, training, hosts
        self.ledger, self.log = folder / "ledger", folder / "log"
        self.mark = f"soak-{os.getpid()}"
        self.nodes = [None] * NODES
        self.names = {}  # process id: what it is
        self.problems = []
        self.excused = set()  # process ids of ddprun whose end needs no explanation
        self.replaced = 0

    def environment(self, node):
        (self.folder / f"tmp.{node}").mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("SLURM_", "PET_", "TORCHELASTIC_", "MASTER_"))}
        return kept | {MARK: self.mark, "OMP_NUM_THREADS": "1", "TMPDIR": str(self.folder / f"tmp.{node}"),
                       "XDG_CACHE_HOME": str(self.folder / "cache"),
                       "GLOO_SOCKET_IFNAME": "eth0" if self.hosts.real else "lo"}

    def start(self, node):
        words = [*self.hosts.enter(node), self.ddprun, f"--nnodes={NODES}", f"--node-rank={node}",
                 f"--rdzv-endpoint={self.hosts.address(0)}:{self.hosts.port}", f"--rdzv-id={self.mark}",
                 f"--local-addr={self.hosts.address(node)}", f"--lease={LEASE}", "--join-timeout=300", "--last-call=0",
                 f"--ledger=directory:{self.ledger}", "--nproc-per-node=1", "--max-restarts=1000000", "--crash-loop=0",
                 *self.training.command()]
        with open(self.log, "ab") as log:
            self.nodes[node] = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                env=self.environment(node))
        self.names[self.nodes[node].pid] = f"ddprun of node {node} (pid {self.nodes[node].pid})"

    def mend(self):
        """Starts each ddprun again that has ended. An end that no fault explains is a problem."""
        for node, process in enumerate(self.nodes):
            if process.poll() is None:
                continue
            if process.pid not in self.excused:
                self.problems.append(f"{self.names[process.pid]} has ended with {process.returncode}")
            self.replaced += 1
            self.start(node)

    def restarts(self):
        """How many generations there were beside the first one."""
        entries = (path.read_text(errors="replace") for path in self.ledger.rglob("entry-*.json"))
        return max(0, sum('"kind": "generation"' in text for text in entries) - 1)

    def processes(self):
        """{process id: (command's name, parent)} of all living processes with the job's mark."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"{MARK}={self.mark}\0".encode() in (entry / "environ").read_bytes():
                    name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
                    if rest.split()[0] != "Z":
                        found[int(entry.name)] = (name, int(rest.split()[1]))
            except OSError:
                pass
        return found

    def tree(self, node):
        """All processes of a node: those below its ddprun."""
        living, found = self.processes(), [self.nodes[node].pid]
        for pid in found:
            found += [each for each, (_, parent) in living.items() if parent == pid]
        return found

    def workers(self, node):
        living = self.processes()
        keepers = [pid for pid in self.tree(node) if living.get(pid, ("",))[0] == "job-keeper"]
        return [pid for pid, (_, parent) in living.items() if parent in keepers]

    def files(self):
        return sum(len(files) for _, _, files in os.walk(self.folder))

    # Faults. Each is over when the call returns.

    def strike(self, fault, node, seconds):
        ddprun, number = self.nodes[node].pid, signal.SIGKILL
        if fault == "kill a ddprun":
            self.excused.add(ddprun)
            send(signal.SIGKILL, [ddprun])
        elif fault == "kill a whole node":
            self.excused.add(ddprun)
            # All at once: a keeper that lived longer would tell the others.
            pids = self.tree(node)
            send(signal.SIGSTOP, pids)
            send(signal.SIGKILL, pids)
        elif fault == "freeze a ddprun":
            # Longer than the lease: its keeper ends it, or it finds the job going on without it.
            self.excused.add(ddprun)
            self.pause([ddprun], LEASE + seconds)
        elif fault == "cut a node's network":
            self.excused.add(ddprun)
            self.hosts.plug(node, False)
            time.sleep(LEASE * seconds)
            self.hosts.plug(node, True)
        elif fault == "freeze a worker":
            self.pause(self.workers(node)[:1], seconds)
        else:
            number = signal.SIGSEGV if fault == "crash a worker" else signal.SIGKILL
            send(number, self.workers(node)[:1])

    @staticmethod
    def pause(pids, seconds):
        send(signal.SIGSTOP, pids)
        time.sleep(seconds)
        send(signal.SIGCONT, pids)

    def stop(self, seconds):
        """Asks for the end, with a last snapshot; the exit codes, or None for a ddprun that had to be killed."""
        self.mend()
        send(signal.SIGTERM, [process.pid for process in self.nodes])
        end = time.monotonic() + seconds
        codes = []
        for process in self.nodes:
            try:
                codes.append(process.wait(max(0, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                codes.append(None)
        return codes

    def clear(self):
        send(signal.SIGKILL, list(self.processes()))
        for process in self.nodes:
            if process:
                process.wait()


def send(number, pids):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
