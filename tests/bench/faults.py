#!/usr/bin/env python3
"""What the loss of a part costs ddprun, and what it costs its leader to lead many (the goals: goals.py).

Losses: nodes of one worker each with the default lease of 10 s and a ledger in a folder, so that the times are those
that a user meets; ../faults tells the same stories with short leases. "Without a word" stops agent, keeper and workers
of a node with SIGSTOP: to the others that is a host whose power is gone. Many nodes are link_nodes (build the target):
the product's own machine, connection and identity for each, in one process that shares the processors with the leader.
Where others load the machine, so they do here: trust minima and medians, and the processor times of the last rows."""
import atexit
import contextlib
import os
import queue
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path

from goals import LEASE
from report import Row, main
from subjects import DDPRUN, HERE, note
from workplace import compiled, descendants, folder, free_port, kill, listening, memory_kib, start, stop, times
from workplace import wait_until

LINK_NODES = os.environ.get("LINK_NODES", str(HERE.parent.parent / "build" / "tests" / "link_nodes"))
found = {}  # {measure: samples}


def sample(measure, unit, value):
    found.setdefault(f"{measure} ({unit})", []).append(value)


def rows():
    """All that was found since the last call."""
    made = [Row(measure, "ddprun", samples) for measure, samples in found.items()]
    found.clear()
    return made


def send(number, pids):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # a helper that has ended meanwhile
            pass


class Job:
    """So many nodes, of which one less may go on; node 0 leads."""

    def __init__(self, nodes):
        self.where, port = folder(), free_port()
        worker = [compiled("stoppable.c"), self.where]
        self.nodes = nodes
        self.agents = []
        for rank in range(nodes):
            self.agents.append(start([DDPRUN, f"--nnodes={nodes - 1}:{nodes}", f"--node-rank={rank}",
                                      f"--rdzv-id=faults{port}", f"--rdzv-endpoint=127.0.0.1:{port}",
                                      f"--ledger=directory:{self.where}/ledger", "--nproc-per-node=1",
                                      f"--lease={LEASE}", *worker]))
            # Node 0 first: the other nodes then find a service at their first call.
            wait_until(lambda: listening(port), 30)

    # `stoppable` notes its begin in begun.GENERATION.RANK, and SIGTERM in told.GENERATION.RANK.
    def runs(self):
        return len(times(self.where, "begun.0.*")) == self.nodes

    # The agent, its keeper and its worker: all that a lost host takes with it.
    def parts(self, rank):
        agent = self.agents[rank].pid
        return [agent, *descendants(agent)]

    # The clock starts just before the signal. `stoppable` uses the same clock.
    def strike(self, rank, number, pids):
        self.at = time.monotonic_ns()
        send(number, pids)

    def again(self):
        return len(times(self.where, "begun.1.*")) == self.nodes - 1

    def seconds(self, pattern):
        return [(t - self.at) / 1e9 for t in times(self.where, pattern)]

    # SIGKILL also ends the processes that SIGSTOP has stopped.
    def end(self):
        send(signal.SIGKILL, [pid for rank in range(self.nodes) for pid in self.parts(rank)])
        stop(*self.agents)


def losses():
    """(measure, nodes, who, signal, all its parts?)"""
    yield "agent killed: next generation", 4, 2, signal.SIGKILL, False
    yield "leader's agent killed: next generation", 4, 0, signal.SIGKILL, False
    yield "agent, keeper and worker killed at once: next generation", 4, 2, signal.SIGKILL, True
    yield "a host gone without a word: next generation", 4, 2, signal.SIGSTOP, True
    yield "the leader's host gone: next generation", 4, 0, signal.SIGSTOP, True
    yield "the leader's host gone, of two: next generation", 2, 0, signal.SIGSTOP, True


def lose_all_once():
    """Every loss in a job of its own, all at the same time: most of it is waiting."""
    trials = [(Job(loss[1]), loss) for loss in losses()]
    try:
        if not wait_until(lambda: all(job.runs() for job, _ in trials), 60, 0.05):
            raise TimeoutError("not all jobs run")
        # One second lets every member confirm a lease. The random part makes sure that no loss keeps step with a beat.
        time.sleep(1 + os.urandom(1)[0] / 256)
        for job, (_, _, who, number, whole) in trials:
            job.strike(who, number, job.parts(who) if whole else job.parts(who)[:1])
            # These end within a second. The wait keeps the restarts of the others from sharing the processors with
            # them.
            if number == signal.SIGKILL and not whole:
                wait_until(job.again, 30)
        wait_until(lambda: all(job.again() for job, _ in trials), 3 * LEASE, 0.05)
        for job, (measure, nodes, _, _, _) in trials:
            begun, told = job.seconds("begun.1.*"), job.seconds("told.0.*")
            # A generation that never came counts as infinite, so that it cannot look like a success.
            sample(measure, "s", max(begun) if len(begun) == nodes - 1 else float("inf"))
            if measure.startswith("agent killed"):
                sample("agent killed: every other worker told", "s", max(told))
    finally:
        for job, _ in trials:
            job.end()


def cpu_seconds(pid):
    # schedstat counts in nanoseconds; /proc/PID/stat counts in ticks of 10 ms, which is too coarse for an idle agent.
    tasks = (HERE / f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Crowd:
    """A leader that is a real ddprun, and so many others of link_nodes; `absent` more never come."""

    def __init__(self, nodes, failures=0, absent=0, silent=False, ledger="memory"):
        where, port = folder(), free_port()
        self.secret = secret = where / "secret"
        # ddprun refuses a secret that others can read. With a secret, the cost of the proofs is part of the measure.
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(os.urandom(32).hex())
        # By default the ledger is in memory, because the nodes of link_nodes do not read it. --crash-loop=0: here
        # workers fail on purpose, one right after the other.
        self.leader = start([DDPRUN, f"--nnodes={nodes + absent}", "--node-rank=0", "--rdzv-id=crowd",
                             f"--ledger={ledger}", f"--rdzv-endpoint=127.0.0.1:{port}", f"--secret-file={secret}",
                             "--max-restarts=100", "--crash-loop=0",
                             "--nproc-per-node=1", f"--lease={LEASE}", "sleep", 1000])
        wait_until(lambda: listening(port), 30)
        words = [LINK_NODES, port, nodes, secret, "crowd", failures] + (["SILENT"] if silent else [])
        self.others = start(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        # A thread reads, so that hear() can give up after 60 s when link_nodes says nothing.
        self.lines = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.others.stdout:
            self.lines.put(line)
        self.lines.put("")

    def hear(self, word):
        line = self.lines.get(timeout=60).split()
        if not line or line[0] != word:
            raise RuntimeError(f"link_nodes says {line}, not {word}")
        return float(line[1])

    # VmHWM is the largest resident memory so far.
    def peak(self):
        text = (HERE / f"/proc/{self.leader.pid}/status").read_text()
        return int(text.partition("VmHWM:")[2].split()[0]) / 1024

    def cpu_while_beating(self, seconds):
        before = cpu_seconds(self.leader.pid)
        time.sleep(seconds)
        return (cpu_seconds(self.leader.pid) - before) / seconds

    def end(self):
        stop(self.leader, self.others)


def meet(nodes):
    """One process is all nodes but the leader, and shares the processors with it."""
    crowd = Crowd(nodes, failures=3)
    try:
        sample(f"{nodes} nodes: all have proved themselves and are welcome", "s", crowd.hear("welcomed"))
        sample(f"{nodes} nodes: of which the leader's processor", "s", cpu_seconds(crowd.leader.pid))
        sample(f"{nodes} nodes: all run the first generation", "s", crowd.hear("met"))
        sample(f"{nodes} nodes: the leader's processor until then", "s", cpu_seconds(crowd.leader.pid))
        for _ in range(3):
            sample(f"{nodes} nodes: a failure to all told", "s", crowd.hear("told"))
            sample(f"{nodes} nodes: a failure to all run again", "s", crowd.hear("again"))
        sample(f"{nodes} nodes: peak memory of the leader", "MiB", crowd.peak())
        beats(f"{nodes} nodes", nodes, crowd)
    finally:
        crowd.end()


def beats(who, nodes, crowd):
    # Each node sends a beat each 0.05 of the lease. The use of the processor is scaled to 10,000 beats a second, so
    # that sizes can be compared.
    used = crowd.cpu_while_beating(5)
    sample(f"{who}: leader, at 10,000 beats/s", "% of a core", 100 * used * 10000 / (nodes / (0.05 * LEASE)))


def gather(nodes):
    """They come, and one more is awaited: what there is before the first generation. A descriptor less for each."""
    crowd = Crowd(nodes, absent=1, silent=True)
    try:
        sample(f"{nodes} nodes: all have proved themselves and are welcome", "s", crowd.hear("welcomed"))
        sample(f"{nodes} nodes: of which the leader's processor", "s", cpu_seconds(crowd.leader.pid))
        # The nodes gather for ten beats: memory for their beats and answers is in the peak, too.
        time.sleep(5)
        sample(f"{nodes} nodes that gather: memory of the leader", "MiB", crowd.peak())
        beats(f"{nodes} nodes that gather", nodes, crowd)
    finally:
        crowd.end()


def idle_agent(seconds):
    job = Job(4)
    try:
        wait_until(job.runs, 30)
        time.sleep(4)  # the start is over: two seconds after it the program is locked in memory
        # The agent and its keeper, without the worker.
        mine = [pid for pid in job.parts(2) if "stoppable" not in open(f"/proc/{pid}/comm").read()]
        before = sum(map(cpu_seconds, mine))
        time.sleep(seconds)
        used = sum(map(cpu_seconds, mine)) - before
        sample("an idle agent and its keeper", "% of a core", 100 * used / seconds)
        sample("an idle agent and its keeper, memory", "MiB", sum(memory_kib(pid)[1] for pid in mine) / 1024)
    finally:
        job.end()


def attempt(measure, *arguments):
    try:
        measure(*arguments)
    except Exception as problem:  # one that fails must not cost the others
        note(f"{measure.__name__}{arguments}: {problem}")


def room_for_crowds():
    """10,000 connections from one address need as many ports and descriptors, and the leader's queue must take them
    when all call at once. As root; the end of this process sets the host as it was."""
    for name, value in (("net/ipv4/ip_local_port_range", "1024 65000"), ("net/core/somaxconn", "16384")):
        setting = Path("/proc/sys") / name
        with contextlib.suppress(OSError):
            before = setting.read_text()
            setting.write_text(value)
            atexit.register(setting.write_text, before)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def attempt_meeting(measure, nodes, *arguments):
    """As attempt(), of nodes that meet: each takes two descriptors in link_nodes."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 2 * nodes + 100 < limit:
        attempt(measure, nodes, *arguments)
    else:
        note(f"{measure.__name__}({nodes}) left out: the hard limit of descriptors (ulimit -Hn) is {limit}; "
             f"it takes {2 * nodes + 100}")


def measure(options):
    room_for_crowds()
    for _ in range(options.repeats):
        if not options.quick:
            attempt(lose_all_once)
        # All but 1024 have no goals: they show how the times grow.
        for nodes in [1024] if options.quick else [16, 64, 256, 1024, 4096, 10000]:
            attempt_meeting(meet, nodes)
        if not options.quick:
            attempt(gather, 10000)
    attempt(idle_agent, 5 if options.quick else 15)
    return rows()


if __name__ == "__main__":
    main(measure)
