#!/usr/bin/env python3
"""Figures on pages, taken from tests/bench/RESULTS.json when the pages are built.

    docs/figures.py --write    puts the tables into README.md again, which is read without being built

A page has a table of TABLES where it has `<!-- figures: NAME -->`, and one figure where it has `{{MEASURE | SUBJECT}}`.
README.md has the table itself, between that line and `<!-- end of figures -->`; tests/docs/pages.sh compares it.
"""
import functools
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GAP, LINES, WARM = "restart gap, {}", "output, 4 workers to a file, {}", "ddprun warm"
# Each row: what is measured, the measure, our subject, and the other subjects with the words before their figures.
RUN, TORCHRUN, PYTHON = "ddprun", {"torchrun": "torchrun"}, {"Python, torchrun": "Python, torchrun"}
EIGHT = ("Start of 8 workers, from exec to the last `main()`", "start, 8 workers (ms)", RUN,
         TORCHRUN | {"mpirun": "mpirun"})
BY_SRUN = ("Start of 64 workers by `srun`", "1 x 64 workers by srun (ms)", RUN, {"srun": "`srun` alone"})
RESUMED = ("Crash to first resumed step, 4 ranks of PyTorch", GAP.format("crash to first resumed step (s)"), WARM,
           TORCHRUN)
OUTPUT = ("Output of 4 workers to a file, million lines a second",
          LINES.format("million lines/s, first worker in main to exit"), RUN, TORCHRUN)
TABLES = {
    "first page": [
        EIGHT, BY_SRUN, RESUMED, OUTPUT,
        ("Host lost without notice, to the next generation", "a host gone without a word: next generation (s)", RUN,
         {}),
    ],
    "comparison": [
        EIGHT, ("Start of 512 workers", "start, 512 workers (ms)", RUN, TORCHRUN), BY_SRUN, RESUMED,
        ("Memory of all processes of that job (PSS)", GAP.format("memory of all processes (MB)"), WARM, TORCHRUN),
        OUTPUT,
        ("Of these 2,000,000 lines, lost or torn", LINES.format("lines lost or torn"), RUN, TORCHRUN),
        ("First all-reduce of 8 CPU ranks, trainer library", "first all-reduce done, 8 ranks (ms)", RUN,
         {"torchrun": "torchrun and Gloo"}),
        ("A GPT in C++, 2 ranks on CPUs: launch to first step", "gpt, launch to first step (s)", "C++", PYTHON),
        ("The same with libtorch", "gpt, launch to first step (s)", "C++ with libtorch", PYTHON),
        ("The GPT in C++: kill to next step", "gpt, kill to next step (s)", "C++", PYTHON),
        ("The same with libtorch", "gpt, kill to next step (s)", "C++ with libtorch", PYTHON),
        ("The GPT in C++: memory of a rank", "gpt, memory of a rank (MB)", "C++", PYTHON),
        ("The same with libtorch", "gpt, memory of a rank (MB)", "C++ with libtorch", PYTHON),
        ("Store: `add` of 8 clients", "store, add, 8 clients (operations/s)", RUN, {"torch-libuv": "PyTorch"}),
        ("Store: 1,000 waiters released", "store, 1,000 waiters, SET to last woken (ms)", RUN,
         {"torch-poll": "PyTorch, poll", "torch-libuv": "PyTorch, libuv"}),
        ("10,000 nodes authenticate and join", "10000 nodes: all have proved themselves and are welcome (s)", RUN, {}),
    ],
}
PLACE = re.compile(r"<!-- figures: ([\w -]+) -->")
ONE = re.compile(r"\{\{([^{}|]+) \| ([^{}|]+)\}\}")
BLOCK = re.compile(r"(<!-- figures: ([\w -]+) -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)


@functools.cache
def results():
    return json.loads((ROOT / "tests/bench/RESULTS.json").read_text())


@functools.cache
def rows():
    return {(row["measure"], row["subject"]): row for row in results()["figures"]}


def figure(measure, subject):
    """The median with its unit, which stands in the measure's name: 4.99 ms."""
    unit = re.search(r"\((ms|s|us|MB|MiB|KiB|operations/s)\)", measure)
    unit = {"us": "µs", "operations/s": "a second"}.get(unit.group(1), unit.group(1)) if unit else ""
    return f"{rows()[measure, subject]['median']} {unit}".strip()


def table(name):
    lines = ["| | ddprun | others | samples |", "|---|---|---|---|"]
    for what, measure, ours, others in TABLES[name]:
        cells = [f"{words} {figure(measure, subject)}" for subject, words in others.items()]
        samples = sorted({int(rows()[measure, subject]["samples"]) for subject in [ours, *others]})
        shown = "-".join(map(str, samples))
        lines.append(f"| {what} | {figure(measure, ours)} | {'; '.join(cells) or '-'} | {shown} |")
    return "\n".join(lines) + "\n"


def missed():
    """All goals that were missed: what, the figure, the goal, the ratio to the peer, the reason."""
    lines = ["| what | figure: median (range, samples) | goal | ratio | reason |", "|---|---|---|---|---|"]
    for goal in results()["goals"]:
        if goal["state"].lower().startswith("missed"):
            cells = [goal[key] for key in ("measure", "figure", "goal", "ratio", "reason")]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def filled(text):
    """A page with its figures."""
    text = PLACE.sub(lambda m: missed() if m.group(1) == "missed goals" else table(m.group(1)), text)
    return ONE.sub(lambda m: figure(m.group(1).strip(), m.group(2).strip()), text)


def first_page(text):
    """README.md with the tables of today."""
    return BLOCK.sub(lambda m: m.group(1) + table(m.group(2)), text)


if __name__ == "__main__":
    readme = ROOT / "README.md"
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    readme.write_text(first_page(readme.read_text()))
