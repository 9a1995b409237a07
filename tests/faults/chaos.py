#!/usr/bin/env python3
"""Chaos on one node: random kills, freezes and floods against workers, keeper and ddprun.

Each round runs one real job and one plan of acts, both drawn from a seed. Then it looks: the job has ended in time,
with a code that its acts explain; no two generations have run at once; no process and no folder of the job is left;
ddprun has not crashed. Two rounds run side by side.

    tests/faults/chaos.py                        ten seconds, always the same; in a long run five minutes with new seeds
    tests/faults/chaos.py --seconds 3600         for so long, with new seeds
    tests/faults/chaos.py --seed 4711 --rounds 1 one round again
    tests/faults/chaos.py --frozen FOLDER        in a quarter of the rounds --on-event's program hangs in the kernel:
                                                 FOLDER is on a file system that `fsfreeze` has frozen

Exit code: 0 if nothing was found, else 1; the seed, the acts and ddprun's lines of each bad round are printed.
"""

import argparse
import collections
import fcntl
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "DDPRUN_CHAOS_MARK"
# From the last act to the end of the job: a frozen keeper is noticed within a lease (2 s), a stopped worker is killed
# after the shutdown timeout (1 s). The rest is for a busy machine.
END_WITHIN = 30
# The last event waits so long for a program that hangs, and ddprun at its end for the program.
EVENTS_WITHIN = 60
# What no act explains: ddprun's own crashes (134 abort, 139 segmentation fault) and internal errors (70).
CODES = {
    "always": {0},
    "worker": {7, 137},  # a worker that fails or is killed more often than it may be restarted
    "ddprun_killed": {-signal.SIGKILL},
    "stopped": {143, 130},
    "keeper": {69, 137},  # many keepers in a row are lost
}


def worker() -> int:
    """A rank: it looks whether an older generation still runs here, has children of all kinds, and ends or fails."""
    rank, generation = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
    folder = pathlib.Path(sys.argv[2])
    dice = random.Random(f"{sys.argv[3]} {rank} {generation}")
    # Held until this process is gone, and by no child.
    with open(folder / f"rank.{rank}", "w") as held:
        os.set_inheritable(held.fileno(), False)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (folder / "overlap").write_text(f"rank {rank} of generation {generation} found an older one running\n")
        progress = int(os.environ["DDPRUN_PROGRESS_FD"])
        if dice.random() < 0.3:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for _ in range(dice.randrange(3)):
            # With a session of its own or not, deaf or not, with its own children or not.
            script = dice.choice(["exec sleep 60", 'trap "" TERM INT HUP; sleep 60', "sleep 60 & sleep 60 & wait"])
            subprocess.Popen(["bash", "-c", script], start_new_session=dice.random() < 0.5)
        end = time.monotonic() + dice.uniform(0.1, 1.5)
        floods = dice.random() < 0.2
        fails = dice.random() < 0.15
        step = 0
        while time.monotonic() < end:
            step += 1
            os.write(progress, b"step=%d\n" % step)
            print(f"rank {rank} step {step}", flush=True)
            if floods:
                os.write(progress, b"\n" * 65536)
                sys.stdout.write("x" * dice.choice([10, 100_000]) + "\n")
            else:
                time.sleep(0.02)
    return 7 if fails else 0


def processes(mark: str) -> list[int]:
    """The living processes that carry the mark. A zombie has no environment."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if f"{MARK}={mark}\0".encode() in environment:
            found.append(int(entry))
    return found


def name_of(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def send(pid: int | None, number: int) -> None:
    if pid:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def is_early(pid: int, number: int) -> bool:
    """Whether this process lives and does not hear this signal yet. ddprun hears it until it ends."""
    try:
        said = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    except OSError:
        return False
    heard = int(said["SigCgt"], 16) | int(said["SigIgn"], 16)
    return "Z" not in said["State"] and not heard >> (number - 1) & 1


class Round:
    def __init__(self, seed: int, binary: str, frozen: str):
        self.seed, self.binary = seed, binary
        self.dice = random.Random(seed)
        self.hangs = frozen if frozen and random.Random(-seed).random() < 0.25 else ""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ddprun-chaos-"))
        self.mark = f"{os.getpid()}-{seed}"
        self.acts: list[str] = []
        self.allowed = set(CODES["always"]) | CODES["worker"]
        self.needs_heir = False

    def run(self) -> list[str]:
        """What is wrong; empty: nothing."""
        (self.folder / "tmp").mkdir()
        environment = dict(os.environ, TMPDIR=str(self.folder / "tmp"), OMP_NUM_THREADS="1")
        environment[MARK] = self.mark
        command = [self.binary, "--standalone", f"--nproc-per-node={self.dice.randint(1, 4)}", "--max-restarts=3"]
        command += ["--lease=2", "--shutdown-timeout=1", "--warm=" + self.dice.choice(["off", "always", "auto"])]
        if self.hangs:
            (self.folder / "event").write_text(f"#!/bin/sh\necho x >>{self.hangs}/{self.mark}\n")
            (self.folder / "event").chmod(0o755)
            command.append(f"--on-event={self.folder}/event")
            self.acts.append("event_hangs")
        command += [sys.executable, __file__, "--worker", str(self.folder)]
        with open(self.folder / "out", "wb") as out, open(self.folder / "err", "wb") as err:
            self.ddprun = subprocess.Popen(
                command + [str(self.seed)], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
            )
            for _ in range(self.dice.randint(0, 6)):
                time.sleep(self.dice.uniform(0.01, 0.6))
                if self.ddprun.poll() is None:
                    self.act()
            problems = self.look_at_the_end()
            if self.needs_heir:
                heir = [self.binary, "--standalone", "sleep", "1"]
                subprocess.run(heir, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, check=False)
        problems += self.look_at_what_is_left()
        if not problems:
            shutil.rmtree(self.folder, ignore_errors=True)
        return problems

    def keeper(self) -> int | None:
        return next((p for p in processes(self.mark) if name_of(p) == "job-keeper"), None)

    def some_worker(self) -> int | None:
        others = [p for p in self.left() if p != self.ddprun.pid and name_of(p) != "job-keeper"]
        return self.dice.choice(others) if others else None

    def act(self) -> None:
        act = self.dice.choice([self.kill_one, self.freeze_one, self.keeper_dies, self.keeper_freezes,
                                self.ddprun_freezes, self.ddprun_stops, self.ddprun_dies, self.both_die,
                                self.signals])  # fmt: skip
        # Deaths of ddprun end the round, so they are rarer.
        if act in (self.ddprun_dies, self.ddprun_stops, self.both_die) and self.dice.random() < 0.6:
            act = self.kill_one
        self.acts.append(act.__name__)
        act()

    def kill_one(self) -> None:
        send(self.some_worker(), signal.SIGKILL)

    def freeze_one(self) -> None:
        pid = self.some_worker()
        send(pid, signal.SIGSTOP)
        # A number may be somebody else's by then; SIGCONT harms nobody.
        threading.Timer(self.dice.uniform(0.1, 2), send, (pid, signal.SIGCONT)).start()

    def keeper_dies(self) -> None:
        self.allowed |= CODES["keeper"]
        send(self.keeper(), signal.SIGKILL)

    def keeper_freezes(self) -> None:
        self.allowed |= CODES["keeper"]
        pid = self.keeper()
        send(pid, signal.SIGSTOP)
        if self.dice.random() < 0.3:
            threading.Timer(self.dice.uniform(0.1, 2), send, (pid, signal.SIGCONT)).start()

    def ddprun_freezes(self) -> None:
        send(self.ddprun.pid, signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.01, 3))
        send(self.ddprun.pid, signal.SIGCONT)
        # In a job of one node no lease passes, so the keeper does not kill it.

    def signal_ddprun(self, number: int) -> None:
        if is_early(self.ddprun.pid, number):
            self.allowed.add(-number)
        send(self.ddprun.pid, number)

    def ddprun_stops(self) -> None:
        self.allowed |= CODES["stopped"]
        self.signal_ddprun(self.dice.choice([signal.SIGTERM, signal.SIGINT]))

    def ddprun_dies(self) -> None:
        # A keeper that stands still cannot clean up: nothing can, when both are lost (agent/README.md).
        if "keeper_freezes" in self.acts:
            return
        self.allowed |= CODES["ddprun_killed"]
        send(self.ddprun.pid, signal.SIGKILL)
        # There may have been no keeper at this moment, or a new one that has not been told of the folder.
        self.needs_heir = "keeper_dies" in self.acts

    def both_die(self) -> None:
        """What is left then is ended by the next ddprun, once the record is there by which it is found."""
        keeper = self.keeper()
        if not keeper or not list((self.folder / "tmp").glob("ddprun_*/origin.json")):
            return
        self.allowed |= CODES["ddprun_killed"]
        send(keeper, signal.SIGSTOP)  # it must not act between the two
        send(self.ddprun.pid, signal.SIGKILL)
        send(keeper, signal.SIGKILL)
        self.needs_heir = True
        self.acts[-1] = "both_die (done)"

    def signals(self) -> None:
        for _ in range(self.dice.choice([1, 200])):
            self.signal_ddprun(self.dice.choice([signal.SIGHUP, signal.SIGWINCH, signal.SIGCHLD, signal.SIGCONT]))
        self.allowed |= {129}

    def look_at_the_end(self) -> list[str]:
        try:
            within = END_WITHIN + (EVENTS_WITHIN if self.hangs else 0)
            code = self.ddprun.wait(within)
        except subprocess.TimeoutExpired:
            return [f"ddprun runs {within} s after the last act"]
        return [] if code in self.allowed else [f"exit code {code}, and not one of {sorted(self.allowed)}"]

    def left(self) -> list[int]:
        """Without the program that hangs: nobody can end it."""
        return [pid for pid in processes(self.mark) if not (self.hangs and name_of(pid) == "event")]

    def look_at_what_is_left(self) -> list[str]:
        problems = []
        give_up = time.monotonic() + 10
        while (left := self.left()) and time.monotonic() < give_up:
            time.sleep(0.05)
        if left:
            problems.append("left: " + ", ".join(f"{pid} ({name_of(pid)})" for pid in left))
            for pid in left:
                send(pid, signal.SIGKILL)
        folders = [entry.name for entry in (self.folder / "tmp").iterdir() if entry.name.startswith("ddprun")]
        if folders:
            problems.append(f"folders left: {folders}")
        if (self.folder / "overlap").exists():
            problems.append((self.folder / "overlap").read_text().strip())
        said = (self.folder / "err").read_text(errors="replace")
        if re.search(r"terminate called|internal error at|unexpected:|Sanitizer|core dumped", said):
            problems.append("ddprun has crashed")
        return problems

    def describe(self, problems: list[str]) -> str:
        said = (self.folder / "err").read_text(errors="replace").splitlines()
        lines = [f"seed {self.seed}: {'; '.join(problems)}", "  acts: " + (", ".join(self.acts) or "none")]
        return "\n".join(lines + ["  " + line for line in said[-25:]] + [f"  files: {self.folder}"])


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        return worker()
    options = argparse.ArgumentParser()
    long = os.environ.get("DDPRUN_LONG", "") != ""
    options.add_argument("--seconds", type=float, default=300 if long else 10)
    options.add_argument("--rounds", type=int, default=0, help="instead of seconds")
    options.add_argument("--seed", type=int)
    options.add_argument("--frozen", default="")
    options.add_argument("--side-by-side", type=int, default=2)
    options.add_argument("--ddprun", default=os.environ.get("DDPRUN_BIN", str(ROOT / "build/bin")) + "/ddprun")
    asked = options.parse_args()
    if asked.seed is None:
        asked.seed = random.randrange(1 << 30) if long or len(sys.argv) > 1 else 1
    end, lock = time.monotonic() + asked.seconds, threading.Lock()
    seeds, bad = iter(range(asked.seed, asked.seed + (1 << 30))), []
    done, acts = [0], collections.Counter()

    def one_after_another() -> None:
        while True:
            with lock:
                if (asked.rounds and done[0] >= asked.rounds) or (not asked.rounds and time.monotonic() >= end):
                    return
                done[0] += 1
                seed = next(seeds)
            one = Round(seed, asked.ddprun, asked.frozen)
            problems = one.run()
            with lock:
                acts.update(one.acts)
                if problems:
                    bad.append(seed)
                    print(one.describe(problems), flush=True)

    threads = [threading.Thread(target=one_after_another) for _ in range(asked.side_by_side)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(", ".join(f"{count} {name}" for name, count in acts.most_common()))
    print(f"{done[0]} rounds from seed {asked.seed} on, {len(bad)} bad" + (f": {bad}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
