"""A rehearsal: two undisturbed runs, one run for each fault, a report. Exit codes: 0 all held, 1 a fault did not hold
or cannot be judged, 69 it cannot be played here."""
from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
from typing import Dict, List

from ddprun_rehearsal import causes, report
from ddprun_rehearsal.judge import Reference, Verdict, judge, refer
from ddprun_rehearsal.play import Order, Played, Player
from ddprun_rehearsal.private import PrivateCopy, Refused

FAILED, UNAVAILABLE = 1, 69
HANG = 10  # seconds: the least --hang-timeout of the run with a frozen rank
NOTICED = 60.0  # after that time, how long ddprun may take until the job trains again
LATEST = 0.8  # of the steps: a fault comes before
OFFLINE = {"WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1", "NEPTUNE_MODE": "offline", "COMET_OFFLINE_MODE": "1"}
UPLOADS = ("CLEARML_API_ACCESS_KEY", "AIM_TRACKING_SERVER", "DD_API_KEY", "AWS_ACCESS_KEY_ID",
           "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_STORAGE_CONNECTION_STRING")


class CannotPlay(Exception):
    """The rehearsal ends with this sentence."""


def note(text: str) -> None:
    print("ddprun: rehearsal: " + text, file=sys.stderr, flush=True)


def private_environment(environment: Dict[str, str], folder: str) -> Dict[str, str]:
    """Trackers write into the copy. A job of Slurm is not to be requeued by a rehearsal."""
    other_nodes = ("SLURM_", "SRUN_", "PMI", "PET_NNODES", "PET_NODE_RANK", "PET_RDZV_", "PET_MASTER_")
    kept = {key: value for key, value in environment.items() if not key.startswith(other_nodes)}
    kept.update(OFFLINE, MLFLOW_TRACKING_URI="file://%s/mlruns" % folder, PYTHONUNBUFFERED="1")
    return kept


def script_text(words: List[str]) -> str:
    for word in words:
        if word.endswith(".py"):
            try:
                with open(word, encoding="utf-8", errors="replace") as file:
                    return file.read()
            except OSError:
                return ""
    return ""


class Rehearsal:
    def __init__(self, given: Dict[str, object]) -> None:
        self._given = given
        self.faults = list(given["faults"])
        self.steps = int(given["steps"])
        self.seed = given["seed"] if given["seed"] is not None else random.SystemRandom().randrange(1 << 30)
        self._random = random.Random(self.seed)
        self._draws = {fault: (self._random.random(), self._random.randrange(1 << 30))
                       for fault in ("kill", "stop", "node", "hang", "disk", "torn")}
        self._pattern = re.compile(given["pattern"]) if given["pattern"] else None
        self._runs = 0
        self._pause = 0.0  # the longest between two steps

    def run(self) -> int:
        folder = os.getcwd()
        self._script = script_text(self._given["program"])
        self._environment = private_environment(dict(os.environ), folder)
        self._command = [self._given["ddprun"], *self._given["options"], "--standalone", "--label",
                         "--timestamps=never", "--log-format=text", "--status-every=1", *self._given["program"]]
        self._copy = PrivateCopy(folder, self._given["program"], dict(os.environ))
        try:
            return self._play()
        finally:
            self._copy.close()

    def _play(self) -> int:
        for name in UPLOADS:
            if name in os.environ:
                note("%s is set: uploads with it are not held back" % name)
        note("seed %s; two undisturbed runs of up to %d steps, then %s" % (
            self.seed, self.steps, ", ".join(self.faults)))
        one = self._run("", self.steps)
        self._judgeable(one)
        reached = max(each.step for each in one.reader.seen())
        times = [each.at for each in one.reader.seen()]
        self._pause = max(after - before for before, after in zip(times, times[1:]))
        other = self._run("", min(self.steps, reached))
        self._judgeable(other)
        reference = refer(one, other)
        note("steps are seen in %s" % one.reader.source())
        note(report.noise_text(reference))
        verdicts = [self._fault(fault, one, reference) for fault in self.faults]
        warnings = causes.warnings(one, self._script)
        facts = {"seed": self.seed, "first": reference.first, "last": reference.last, "source": one.reader.source()}
        form = report.as_json if self._given["format"] == "json" else report.text
        sys.stdout.write(form(verdicts, facts, warnings))
        return 0 if all(each.held for each in verdicts) else FAILED

    def _fault(self, fault: str, one: Played, reference: Reference) -> Verdict:
        part, choice = self._draws[fault]
        step = self._step_of(part, one, reference)
        played = self._run(fault, reference.last, step, choice)
        verdict = judge(played, reference, step)
        verdict.causes = [] if verdict.held else causes.find(verdict, played, reference, self._script)
        if not verdict.held:
            note("%s: did not hold" % fault)
        return verdict

    def _step_of(self, part: float, one: Played, reference: Reference) -> int:
        """After the second snapshot, if there is one so early, and well before the end."""
        saved = sorted({max((step.step or 0 for step in one.reader.seen() if step.at <= each.at), default=0)
                        for each in one.saves})
        end = int(reference.first + LATEST * (reference.last - reference.first))
        early = [each for each in saved[:2] if each < end]
        begin = (early[-1] if early else reference.first) + 2 * reference.stride
        return begin + int(part * max(0, end - begin))

    def _run(self, fault: str, last: int, step: int = -1, choice: int = 0) -> Played:
        if self._runs:
            self._copy.fresh()
        self._runs += 1
        order = Order(self._command, self._environment, last, fault, step, choice, self._pattern)
        if fault == "hang":
            self._hang(order)
        played = Player(order, self._copy, "%d.%d" % (os.getpid(), self._runs)).play()
        note("run %d (%s): %.0f s" % (self._runs, fault or "undisturbed", played.seconds))
        return played

    def _hang(self, order: Order) -> None:
        """Without an option of the user's own, ddprun looks for hangs after three times the longest pause."""
        seconds = max(HANG, int(3 * self._pause) + 1)
        if not self._given["hang_timeout_given"]:
            at = len(order.command) - len(self._given["program"])
            order.command = order.command[:at] + ["--hang-timeout=%d" % seconds] + order.command[at:]
            order.patience = seconds + NOTICED

    def _judgeable(self, played: Played) -> None:
        """Whether an undisturbed run is one to compare with."""
        seen = {each.step for each in played.reader.seen()}
        if played.code not in (None, 0) or played.silent:
            what = "has printed no step for minutes" if played.silent else "ends with %d" % played.code
            if causes.port_in_use(played):
                what += " (a port is fixed in the script: the next start finds it in use)"
            tail = "\n".join(played.reader.tail[-12:])
            raise CannotPlay("the undisturbed run %s. Its last lines:\n%s" % (what, tail))
        if len(seen) < 3:
            once = "; reported progress is seen once a second" if played.reader.source() == "reported progress" else ""
            raise CannotPlay("only %d steps were seen in the undisturbed run%s: print lines such as "
                             "\"step 17 loss 0.52\", or give --rehearse-pattern" % (len(seen), once))
        if not played.saves:
            raise CannotPlay("the undisturbed run has written no snapshot in %d steps; give more with "
                             "--rehearse-steps, or let the program save more often" % len(seen))


def read(words: List[str]) -> Dict[str, object]:
    """The order of launcher/options/rehearsal_order.h."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("ddprun", "faults", "pattern", "format"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--hang-timeout-given", action="store_true")
    parser.add_argument("--option", action="append", default=[], dest="options")
    at = words.index("--")
    given = vars(parser.parse_args(words[:at]))
    return dict(given, faults=given["faults"].split(","), program=words[at + 1:])


def main(words: List[str]) -> int:
    given = read(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return Rehearsal(given).run()
    except Refused as why:
        note("error: %s" % why)
        return UNAVAILABLE
    except CannotPlay as why:
        note("error: %s" % why)
        return FAILED
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
