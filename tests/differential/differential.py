#!/usr/bin/env python3
"""torchrun and ddprun side by side: the same cases, and only the differences that are meant.

    differential.py record TORCHRUN [CASE…]   all or these cases under this torchrun, into tests/data/torchrun/VERSION.json
    differential.py check DDPRUN           all cases under ddprun, by both of its names, against all files
                                           (Debian's is torchrun_debian.py)
    differential.py again TORCHRUN         ten cases anew under this torchrun, against the file of its version
    differential.py options DDPRUN [TORCHRUN]   every option of torchrun's help is one of ddprun's, and is in a case

What may differ stands in launcher/DIFFERENCES.md. The first column of its tables names the difference: `env NAME`,
`exit KIND`, `arguments`, `output`, `files`, with ` in CASE` or ` in VERSION` where it is that one's alone; the second says whether it is one
too when ddprun is called by the name torchrun. A difference without a row fails, and so does a row that is never met."""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from cases import CASES
from launch import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/torchrun"
PAGE = ROOT / "launcher/DIFFERENCES.md"


def options_of(help_text):
    """Long options of argparse's help, with dashes: the lines that begin with one. Before 2.0 they had underscores only."""
    names = set()
    for line in help_text.splitlines():
        if re.match(r"^  -", line):
            names |= {name.replace("_", "-") for name in re.findall(r"--[a-z][a-z0-9_-]*", line.split("   ")[0])}
    return sorted(names - {"--help"})


def options_in(line):
    """Long options among our words of a case, with dashes."""
    words = line.split("WORKER")[0].split()
    return {word.split("=")[0].replace("_", "-") for word in words if word.startswith("--") and word != "--"}


def as_spelled_before_2_0(line):
    """A case's words in the only spelling that there was, or nothing where there was none."""
    ours, worker, theirs = line.partition("WORKER")
    return re.sub(r"(?<=--)[a-z-]+", lambda name: name[0].replace("-", "_"), ours) + worker + theirs


def version_of(torchrun):
    python = pathlib.Path(torchrun[0]).parent / "python3"
    if not python.exists():
        python = "/usr/bin/python3"  # torchrun_debian.py
    asked = subprocess.run([str(python), "-c", "import torch; print(torch.__version__)"],
                           capture_output=True, text=True, check=True)
    return re.match("[0-9.]+", asked.stdout)[0]


def major_of(version):
    return int(version.split(".")[0])


def ours_known():
    """The options of the newest recorded version."""
    return set(list(recorded().values())[-1]["options"])


def record(torchrun, names):
    file = DATA / (version_of(torchrun) + ".json")
    help_text = subprocess.run(torchrun + ["--help"], capture_output=True, text=True, check=True).stdout
    answers = json.loads(file.read_text())["cases"] if names else {}
    known = set(options_of(help_text))
    underscores_only = "--nproc-per-node" not in help_text
    for case in CASES:
        if names and case.name not in names:
            continue
        # What that version did not have yet is no case of it; what nobody has is.
        if case.since > major_of(file.stem):
            continue
        if set().union(*map(options_in, [case.args, *case.nodes])) & ours_known() - known:
            continue
        if underscores_only:
            case = dataclasses.replace(case, args=as_spelled_before_2_0(case.args),
                                       nodes=[as_spelled_before_2_0(line) for line in case.nodes])
        answers[case.name] = run(torchrun, case)
        answers[case.name].pop("said")
        print(case.name, answers[case.name]["codes"], flush=True)
    file.write_text(json.dumps({"options": options_of(help_text), "cases": answers}, indent=1, sort_keys=True) + "\n")


class Page:
    """The rows of DIFFERENCES.md, and which of them were met."""

    def __init__(self):
        self.rows = {}
        for line in PAGE.read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("| `") and cells[1] in ("yes", "no"):
                for key in re.findall(r"`([^`]+)`", cells[0]):
                    self.rows[key] = cells[1] == "yes"
        self.met = set()

    def allows(self, key, case, version, as_torchrun):
        for row in (key, f"{key} in {case}", f"{key} in {version}"):
            if row in self.rows and (self.rows[row] or not as_torchrun):
                self.met.add(row)
                return True
        return False


def differences(theirs, ours, case):
    """Pairs of key and sentence."""
    if theirs["codes"] != ours["codes"]:
        yield f"exit {case.kind}", f"{theirs['codes']} there, {ours['codes']} here: {ours.get('said', '').strip()}"
    for name in sorted(set(theirs["workers"]) | set(ours["workers"])):
        there, here = theirs["workers"].get(name), ours["workers"].get(name)
        if not there or not here:
            # One that ran in another attempt there has another count.
            attempts = [other for other in theirs["workers"] if other.split(".")[1] == name.split(".")[1]]
            yield ("env TORCHELASTIC_RESTART_COUNT" if here and attempts else "workers",
                   f"attempt.rank {name} ran only {'here' if here else 'there'}")
            continue
        for key in sorted(set(there["env"]) | set(here["env"])):
            if there["env"].get(key) != here["env"].get(key):
                yield f"env {key}", f"{there['env'].get(key)!r} there, {here['env'].get(key)!r} here, of {name}"
        if there["gone"] != here["gone"]:
            yield "env", f"not passed on: {there['gone']} there, {here['gone']} here"
        for key in ("argv", "cwd", "main"):
            if there[key] != here[key]:
                yield "arguments", f"{there[key]!r} there, {here[key]!r} here"
    for stream in ("stdout", "stderr"):
        if theirs[stream] != ours[stream]:
            yield "output", f"{stream} {theirs[stream]} there, {ours[stream]} here"
    if theirs["files"] != ours["files"]:
        yield "files", f"{theirs['files']} there, {ours['files']} here"


def compare(theirs, ours, case, page, as_torchrun, version=""):
    where = "as torchrun" if as_torchrun else "as ddprun"
    failures = []
    for key, sentence in differences(theirs, ours, case):
        if not page.allows(key, case.name, version, as_torchrun):
            failures.append(f"{case.name}, {where}, {version}: {key}: {sentence}")
    return failures


def recorded():
    files = sorted(DATA.glob("*.json"), key=lambda f: [int(n) for n in re.findall(r"\d+", f.stem)])
    return {f.stem: json.loads(f.read_text()) for f in files}


def check(ddprun):
    page, failures, versions = Page(), [], recorded()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as pool:
        link = pathlib.Path(folder) / "torchrun"
        link.symlink_to(pathlib.Path(ddprun[0]).resolve())
        answers = {}
        for as_torchrun, launcher in ((False, ddprun), (True, [str(link)])):
            for case, answer in zip(CASES, pool.map(lambda c, l=launcher: run(l, c), CASES)):
                answers[case.name, as_torchrun] = answer
        for version, file in versions.items():
            for case in CASES:
                for as_torchrun in (False, True):
                    if case.name in file["cases"]:
                        failures += compare(file["cases"][case.name], answers[case.name, as_torchrun], case, page,
                                            as_torchrun, version)
    failures += [f"{PAGE.name}: no case meets the row {row}" for row in sorted(set(page.rows) - page.met)]
    print(f"{len(CASES)} cases, {len(versions)} versions of torchrun, {len(page.met)} meant differences")
    return failures


def again(torchrun):
    """What torchrun says today against what it said when the file was made."""
    version, failures, nothing = version_of(torchrun), [], Page()
    nothing.rows = {}
    file = recorded().get(version)
    if not file:
        return [f"no recorded answers of {version}; differential.py record {' '.join(torchrun)}"]
    for case in CASES:
        if case.again:
            failures += compare(file["cases"][case.name], run(torchrun, case), case, nothing, True)
    return failures


def options(ddprun, torchrun):
    """The newest recorded help, and that of a torchrun at hand."""
    theirs = set(list(recorded().values())[-1]["options"])
    if torchrun:
        theirs |= set(options_of(subprocess.run(torchrun + ["--help"], capture_output=True, text=True, check=True).stdout))
    ours = set(re.findall(r"^  (?:-., )?(--[a-z-]+)", subprocess.run(ddprun + ["--help-all"], capture_output=True, text=True,
                                                                     check=True).stdout, re.M))
    used = {w.split("=")[0].replace("_", "-") for c in CASES for line in [c.args, *c.nodes] for w in line.split()}
    short = {"-m": "--module", "-r": "--redirects", "-t3": "--tee"}
    used |= {short[w] for w in used if w in short}
    return ([f"torchrun's {name} is no option of ddprun" for name in sorted(theirs - ours)] +
            [f"no case uses {name}" for name in sorted(theirs - used)])


def main(mode, *words):
    if mode == "record":
        return record([words[0]], words[1:])
    if mode == "options":
        failures = options([words[0]], list(words[1:]))
    else:
        failures = {"check": check, "again": again}[mode](list(words))
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
