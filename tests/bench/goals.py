"""Every figure that has a goal: one table. A goal stands under its measure's name, which is a row's name in report.py.

A goal without peers is a bound of the figure itself. With peers it is a bound of the ratio to the best of them that
was measured. `reason` says what keeps a goal out of reach, where that is known; it is printed where the goal is missed.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    measure: str
    bound: float
    peers: tuple = ()
    subject: str = "ddprun"
    more: bool = False  # the figure is a rate: more is better, and the bound is the least
    reason: str = ""
    limit: str = ""  # a subject that shows the limit: only if it misses the goal too, the reason counts


LIBUV = "torch-libuv"
TORCH = (LIBUV, "torch-poll")
TORCHRUN, SRUN, FLOOR, COLD = ("torchrun",), ("srun",), ("floor",), ("ddprun cold",)
LEASE = 10  # seconds; faults.py runs its jobs with this one, ddprun's default

# Limits that were found, each written once.
CLIENT = "the client's own time is the limit"
LOOPBACK = "one send for each waiter, which carries the packet through the loopback to its reader"
CORES = ("client and server share these cores, and the kernel has nine tenths of the server's time; the floor, which "
         "keeps nothing, is at 1.22 to 1.30 with both")
RELEASE = ("one send for each waiter, and some 2,500 instructions; one sample a run, and the floor's was 0.58 in one "
           "and 1.52 in another")
ONE_CALL = "two samples a run, and PyTorch's are 8.2 and 11.7 us in one; 0.93 and 0.98 in other runs"
NAMES = "newer versions of PyTorch ask no name server either"
HALF_A_STEP = ("a rank sees at its next collective call, half a step later, that another is gone; that and the step "
               "itself take as long")
AGAIN = ("a rank sees half a step later that another is gone, and loading libtorch and a step follow; 0.19 and 0.20 in "
         "other runs")
LIBTORCH = "the dynamic linker takes as long to load libtorch, before main() begins"
OWN_START = ("ddprun's own start, some 3 ms with two processes and 350 pages to map, comes before; a worker more costs "
             "0.2 ms, as with posix_spawn")
# Counted and measured at 1, 8 and 50 clients, in turns: processor time 1.17 to 1.28 of the floor's (PyTorch's: 1.65).
STORE = ("it makes the floor's system calls and no more, but needs 1.2 times its processor time: 2,900 instructions of "
         "its own for a request (decoder, table, checks, replies), in which no part stands out")
LARGE = "its samples differ by a factor of two beside other work; 0.62 on a quiet machine"
MPICH = "64 programs of MPICH on two cores are nearly all of it, and runs differ by a tenth; 1.00 in a longer run"
LINK = "both sides fill the link; 1.00 and 1.08 in other runs"
SHARED = ("it needs 0.6 ms of processor time on one core; a call of 3 to 4 ms waits for a core that another process has, "
          "PyTorch's too: 4.1 ms on two busy cores had 3.7 ms of waiting for one, of both ranks together; "
          "0.68 in the median of 20 pairs")
EVEN = "a millisecond of 115, which is less than the spread; 0.94 with one rank and 0.92 with four in the same run"
LARGE_FOLIOS = "5.8 to 6.1 MiB: Linux maps the page cache in blocks as large as it happens to have them"
DISK = "a virtual disk, of which one sample differs by a fifth from the next; 1.13 in another run"
STEP = "the spread is larger than the margin: the same PyTorch program, started by another launcher"
FIRST_STEP = "a step of the model, some 0.2 s, is in it"
# Tried on a day when this one took 15 %: both in the same minutes, in turns, beside other work.
WOKEN = ("the leader is woken for each Beat, and the machine's day decides what that costs: the program that needed "
         "10.3 % when it was made took 15 % beside 12 to 13 % of this one, five days later")
CROWD = "one process is all the other nodes: with its start it takes 0.10 s of a core for it, the leader 0.06 s"
DAY = "a time without a peer: 0.107 and 0.109 s on days when this machine was 1.5 times as fast"
SPAWN = "posix_spawn of as many programs alone takes nearly as long"


def start_goals():
    yield Goal("start, 1 worker (ms)", 3, reason="2.9 ms at best; it is two processes with 350 pages to map")
    yield Goal("start, 8 workers (ms)", 1.5, FLOOR, reason=OWN_START)
    yield Goal("start, 64 workers (ms)", 1.0, FLOOR, reason=OWN_START)
    yield Goal("start, 512 workers (ms)", 1 / 20, TORCHRUN, reason=SPAWN, limit="floor")
    for shape in ("1 x 8", "1 x 64", "4 x 8"):
        yield Goal(f"{shape} workers by srun (ms)", 1.0, SRUN)
    yield Goal("no-op, 1 worker, exec to exit (ms)", 1.0, ("mpirun", "srun", "torchrun"))
    yield Goal("first all-reduce done, 8 ranks (ms)", 1 / 20, TORCHRUN)
    yield Goal("init_process_group('gloo'), 8 ranks (ms)", 1.0, TORCHRUN)
    yield Goal("PMI start, 64 ranks through MPI_Init and a barrier (ms)", 1.0, ("hydra",), reason=MPICH)


def restart_goals():
    yield Goal("restart, 8 workers, 1 node (ms)", 1.0, TORCHRUN)
    yield Goal("4 agents x 2 workers, start (ms)", 1.0, TORCHRUN)
    yield Goal("4 agents x 2 workers, restart (ms)", 1.0, TORCHRUN)
    yield Goal("restart gap, crash to first resumed step (s)", 1 / 20, TORCHRUN, "ddprun warm")
    yield Goal("restart gap, memory of all processes (MB)", 0.5, COLD, "ddprun warm")
    yield Goal("SIGTERM to the end, 8 workers, 1 node (ms)", 1.0, ("mpirun", "torchrun"))
    yield Goal("workers that live 3 s after the launcher's SIGKILL", 0)


def output_goals():
    for workers in (4, 8):
        for to in ("file", "reader"):
            title = f"output, {workers} workers to a {to},"
            yield Goal(f"{title} million lines/s, first worker in main to exit", 1.0, TORCHRUN, more=True)
            yield Goal(f"{title} lines lost or torn", 0)
            yield Goal(f"{title} lines doubled", 0)
    yield Goal("output, age of a line on the console, 4 workers, 99th percentile (ms)", 1.0, TORCHRUN)
    yield Goal("output, worker that logs 100 K lines/s, a line (us)", 1.05, FLOOR)


def idle_goals():
    yield Goal("idle launcher, 8 workers, PSS (MiB)", 6, reason=LARGE_FOLIOS)
    yield Goal("idle launcher, 8 workers, processor (% of a core)", 0.1)
    yield Goal("an idle agent and its keeper (% of a core)", 0.1)


def store_goals():
    # 0.999: ahead of PyTorch.
    yield Goal("store, add, 1 client, one core (us)", 0.999, TORCH, reason=ONE_CALL)
    yield Goal("store, add, 1 client, one core (us)", 1.15, ("echo",))
    yield Goal("store, get as PyTorch's client sends it, 1 client, one core (us)", 0.999, TORCH)
    yield Goal("store, get, ddprun's client in one trip, 1 client, one core (us)", 0.6, TORCH)
    yield Goal("store, add, 8 clients (operations/s)", 0.95, FLOOR, more=True, reason=STORE)
    yield Goal("store, get, 8 clients (operations/s)", 0.95, FLOOR, more=True, reason=STORE)
    yield Goal("store, set, 8 clients (operations/s)", 1.2, TORCH, more=True, reason=CLIENT, limit="floor")
    for op in ("add", "get"):
        yield Goal(f"store, {op}, 50 clients, no pipeline (operations/s)", 0.95, FLOOR, more=True, reason=STORE)
    for op in ("add", "get"):
        yield Goal(f"store, {op}, 1000 clients, no pipeline (operations/s)", 1.3, ("redis",), more=True, reason=CORES)
    yield Goal("store, 1,000 waiters, SET to last woken (ms)", 0.8, TORCH, reason=LOOPBACK, limit="floor")
    yield Goal("store, 10,000 waiters, SET to last woken (ms)", 0.8, TORCH, reason=RELEASE)
    yield Goal("store, 1,000 clients connect one by one (ms)", 0.5, TORCH, reason=CLIENT, limit="floor")
    yield Goal("store, 50 clients connect, silent name server (ms)", 0.5, TORCH, reason=NAMES)
    yield Goal("store, memory of an idle connection (KiB)", 1)
    yield Goal("store, 16 MiB, set and get (ms)", 1 / 1.5, ("torch-poll",), reason=LARGE)


def trainer_goals():
    yield Goal("2 ranks, all-reduce of 26 MB (ms)", 1.0, TORCHRUN)
    yield Goal("2 ranks, all-reduce of 1 MiB (ms)", 0.85, TORCHRUN, reason=SHARED)
    yield Goal("2 ranks, step with 4.7 MB of gradients (ms)", 0.9, TORCHRUN)
    yield Goal("overlap at 1 Gbit/s gain (%)", 1.0, TORCHRUN, more=True, reason=LINK)
    yield Goal("snapshot, stall in memory (GB/s)", 0.8, ("memcpy",), more=True)
    yield Goal("snapshot, first stall beside the tenth's (GB/s)", 1 / 1.3, ("tenth",), more=True)
    yield Goal("snapshot, write to disk (GB/s)", 0.85, ("dd oflag=direct",), more=True, reason=DISK)
    yield Goal("snapshot, save and fsync (GB/s)", 1.0, ("torch",), more=True)
    yield Goal("snapshot, load (GB/s)", 1.5, ("torch",), more=True)
    yield Goal("step on one GPU, world 1 (ms)", 1.01, ("without",))
    for world in (1, 2, 4):
        yield Goal(f"scaling, {world} rank{'s' if world > 1 else ''} (ms a step)", 1.0, ("PyTorch DDP",),
                   reason=EVEN if world == 2 else "")


def model_goals():
    python = ("Python, torchrun",)
    for model, subject, step, crash in (("gpt", "C++", 0.9, 1 / 20), ("gpt", "C++ with libtorch", 1.0, 1 / 5),
                                        ("mnist", "C++ with libtorch", 1.0, 1 / 5)):
        torch = subject != "C++"
        yield Goal(f"{model}, a step (ms)", step, python, subject, reason=STEP, limit="Python, ddprun cold")
        yield Goal(f"{model}, launch to first step (s)", 1 / 20, python, subject,
                   reason=LIBTORCH if torch else FIRST_STEP, limit="libtorch alone" if torch else "")
        yield Goal(f"{model}, kill to next step (s)", crash, python, subject,
                   reason=AGAIN if torch else HALF_A_STEP, limit="" if torch else "a step and a half")


def loss_goals():
    # The keeper of a killed agent says so at once. With the keeper gone, the lease has to pass. Without the leader, the
    # others look for a new one first.
    yield Goal("agent killed: next generation (s)", 1)
    yield Goal("agent killed: every other worker told (s)", 0.02)
    yield Goal("leader's agent killed: next generation (s)", 1)
    yield Goal("agent, keeper and worker killed at once: next generation (s)", 1.1 * LEASE)
    yield Goal("a host gone without a word: next generation (s)", 1.1 * LEASE)
    yield Goal("the leader's host gone: next generation (s)", 1.75 * LEASE)
    yield Goal("the leader's host gone, of two: next generation (s)", 1.75 * LEASE)


def crowd_goals():
    for step in ("all have proved themselves and are welcome", "all run the first generation"):
        yield Goal(f"1024 nodes: {step} (s)", 0.12, reason=CROWD)
    for step in ("of which the leader's processor", "the leader's processor until then"):
        yield Goal(f"1024 nodes: {step} (s)", 0.12, reason=DAY)
    yield Goal("1024 nodes: a failure to all told (s)", 0.12)
    yield Goal("10000 nodes: all have proved themselves and are welcome (s)", 1.2)
    yield Goal("10000 nodes that gather: memory of the leader (MiB)", 100)
    yield Goal("1024 nodes: leader, at 10,000 beats/s (% of a core)", 10, reason=WOKEN)
    yield Goal("10000 nodes that gather: leader, at 10,000 beats/s (% of a core)", 10, reason=WOKEN)
    yield Goal("1000 nodes: ddpctl status (s)", 0.05)
    yield Goal("10000 nodes: ddpctl status (s)", 0.5)


PARTS = (start_goals, restart_goals, output_goals, idle_goals, store_goals, trainer_goals, model_goals, loss_goals,
         crowd_goals)
GOALS = [goal for part in PARTS for goal in part()]
