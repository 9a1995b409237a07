#!/usr/bin/env python3
"""All figures in one run: every measure beside its peers, in rounds, with goals, JSON, plots and a results page.

The measures take turns: a second round begins when the first is over, so that a busy minute hits no measure alone, and
rounds go on while there is time. A quick run is one round. run.sh installs and builds what this needs.
"""
import datetime
import importlib
import importlib.util
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import drawing
import goals
import report
import subjects
import verdicts
import workplace

HERE = Path(__file__).resolve().parent
FULL, QUICK = 14 * 60, 225  # seconds of measuring


@dataclass
class Measure:
    name: str  # of the module
    repeats: int  # turns of each subject in one round
    quick_repeats: int
    quick_seconds: int  # what it takes in a quick run on two cores
    once: bool = False  # not in later rounds: it takes long, and says the same each time
    quick: bool = True  # also in a quick run


# Those with Slurm come first and by themselves: its daemons are stopped before the others are measured.
WITH_SLURM = [Measure("start", 3, 1, 12), Measure("noop", 3, 1, 4), Measure("tee", 1, 1, 28),
              Measure("by_srun", 3, 1, 20, once=True, quick=False)]
ALONE = [Measure("store", 2, 1, 40), Measure("restart", 4, 2, 7), Measure("multi", 2, 1, 10),
         Measure("trainer", 1, 1, 43), Measure("rss", 1, 1, 14), Measure("stop", 3, 1, 4),
         Measure("restart_gap", 1, 1, 35), Measure("faults", 1, 1, 20, once=True),
         Measure("scaling", 1, 1, 30, quick=False), Measure("init", 1, 1, 45, quick=False),
         Measure("mpi", 2, 1, 15, quick=False), Measure("models", 1, 1, 110, once=True, quick=False),
         Measure("ctl_status", 3, 1, 10, once=True, quick=False),
         Measure("orphans", 1, 1, 12, once=True, quick=False), Measure("dead_agent", 1, 1, 90, once=True, quick=False)]
SLURMS_SHARE = 0.18  # of the time
MOST_ROUNDS = 5  # more samples would say the same


class Rounds:
    """Which measure comes next, and whether there is time for it. Pure: the caller tells the time."""

    def __init__(self, measures, quick, end):
        self.quick, self.end = quick, end
        self.todo = [each for each in measures if each.quick or not quick]
        self.again = []  # of this round, what may have another turn
        self.round = 1
        self.took = {}

    def next(self, now):
        """The next measure; None when nothing more fits into the time."""
        while self.todo or self.again:
            if not self.todo:
                self.todo, self.again, self.round = self.again, [], self.round + 1
                if self.quick or self.round > MOST_ROUNDS:
                    return None
            each = self.todo.pop(0)
            # Nothing is left out: the first round takes as long as it needs.
            if self.round == 1 or now + self.took[each.name] <= self.end:
                return each
        return None

    def done(self, measure, seconds, found):
        """A turn is over; whether it has found any figures."""
        self.took[measure.name] = seconds
        if found and not measure.once:
            self.again.append(measure)


def play(rounds, options):
    """Measures until the time is over; the rows, and what failed as a whole."""
    rows, failed = [], []
    while measure := rounds.next(time.monotonic()):
        begun = time.monotonic()
        options.repeats = measure.quick_repeats if options.quick else measure.repeats
        found = []
        try:
            found = importlib.import_module(measure.name).measure(options)
        except Exception as problem:  # one measure that fails must not cost the others
            subjects.note(f"{measure.name} failed: {problem}")
            failed.append(measure.name)
        rows += found
        rounds.done(measure, time.monotonic() - begun, bool(found))
        print(f"{measure.name}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return rows, failed


def output_of(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, cwd=HERE, timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def asked_for(measures, only):
    """The measures of these names; all where there are none. What is asked for by its name is in a quick run, too."""
    return [replace(each, quick=True) for each in measures if each.name in only] if only else measures


def machine():
    """What the figures were taken on, and when."""
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = next((line.partition("=")[2].strip('"') for line in Path("/etc/os-release").read_text().splitlines()
                   if line.startswith("PRETTY_NAME")), platform.system())
    first = lambda text: text.splitlines()[0] if text else ""
    return {"date": datetime.date.today().isoformat(), "commit": output_of("git", "rev-parse", "--short", "HEAD"),
            "processor": model, "cores": os.cpu_count(), "memory_gib": round(memory), "system": system,
            "kernel": platform.release(), "load_before": round(os.getloadavg()[0], 1),
            "ddprun": first(output_of(subjects.DDPRUN, "--version")),
            "torch": output_of(subjects.PYTHON, "-c", "import torch; print(torch.__version__)"),
            "slurm": output_of("slurmctld", "-V"), "mpirun": first(output_of("mpirun", "--version")),
            "redis": output_of("redis-server", "--version").partition(" sha=")[0]}


def page(about, rows, judged, plots):
    """The results as Markdown."""
    there = ", ".join(f"{key} {value}" for key, value in about.items() if value not in ("", None) and key != "date")
    pictures = [f"![{path.stem}]({path.parent.name}/{path.name})" for path in plots]
    return "\n\n".join([
        f"# Figures of {about['date']}",
        "Written by `run.sh --results`. Every figure was taken beside its peers in the "
        "same run: read ratios before absolute figures.", f"Machine: {there}.", verdicts.summary(judged) + ".",
        "## Goals", verdicts.verdict_table(judged), *(["## Plots", *pictures] if pictures else []), "## All figures",
        report.table(rows), *(["## Notes", "\n".join(f"- {text}" for text in subjects.notes)] if subjects.notes else [])
    ]) + "\n"


def command_line():
    parser = report.parser(__doc__)
    parser.add_argument("--json", metavar="FILE", help="all samples and verdicts, for programs")
    parser.add_argument("--plots", metavar="FOLDER", help="draws the plots there, as PNG")
    parser.add_argument("--results", action="store_true", help="write RESULTS.md with its plots, and RESULTS.json, into this folder")
    parser.add_argument("--only", metavar="NAME,…", help="these measures alone")
    chosen = parser.parse_args()
    chosen.subjects = chosen.subjects.split(",")
    known = [each.name for each in WITH_SLURM + ALONE]
    chosen.only = chosen.only.split(",") if chosen.only else []
    if unknown := set(chosen.only) - set(known):
        parser.error(f"no measure {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    # Known before minutes of measuring, and not after them.
    if (chosen.results or chosen.plots) and not importlib.util.find_spec("matplotlib"):
        parser.error("the plots need matplotlib: install python3-matplotlib, or start run.sh")
    if chosen.json and not os.access(Path(chosen.json).absolute().parent, os.W_OK):
        parser.error(f"--json={chosen.json}: its folder cannot be written")
    return chosen


def main():
    options = command_line()
    workplace.isolate()
    about, begun = machine(), time.monotonic()
    seconds = QUICK if options.quick else FULL
    if options.quick and not options.only:
        left_out = ", ".join(each.name for each in WITH_SLURM + ALONE if not each.quick)
        subjects.note(f"a quick run leaves out {left_out}, the largest sizes, the "
                      "slow peers of some rows, and further rounds")
    rows, failed = [], []
    for measures, share in ((WITH_SLURM, SLURMS_SHARE), (ALONE, 1)):
        found, broken = play(Rounds(asked_for(measures, options.only), options.quick, begun + share * seconds), options)
        rows, failed = rows + found, failed + broken
        subjects.lab_down()
    rows = report.merged(rows)
    about["seconds"], about["load_after"] = round(time.monotonic() - begun), round(os.getloadavg()[0], 1)
    # What was not asked for is not missing.
    measured = {row.measure for row in rows}
    judged = verdicts.judge([goal for goal in goals.GOALS if goal.measure in measured or not options.only], rows)
    if options.json:  # before anything else can break
        Path(options.json).write_text(verdicts.as_json(about, rows, judged, subjects.notes))
    plots = []
    if options.results or options.plots:
        plots = drawing.draw(rows, HERE / "plots" if options.results else Path(options.plots))
    if options.results:
        (HERE / "RESULTS.md").write_text(page(about, rows, judged, plots))
        (HERE / "RESULTS.json").write_text(verdicts.results_json(about, rows, judged))
    print(page(about, rows, judged, plots))
    # A goal that is missed is a result. A measure that breaks is a fault of this run.
    sys.exit(f"these measures failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
