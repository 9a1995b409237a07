#!/usr/bin/env python3
"""What a build costs: processor time, wall time and compilations of three builds, each without ccache.

  quickstart  the programs that examples/quickstart.sh builds, from nothing
  whole       the preset release with all tests, from nothing
  change      one .cc file of a rule is changed: until its room's test has answered, with the presets release and dev

The builds are made of a copy of this tree, in a temporary folder below $BENCH_DISK (default build/, some GB for
`whole`). Processor time is that of all children (getrusage), so it holds beside other work better than the wall time;
processors that share a core still cost each other up to a half.
"""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parents[2]
RULE, TEST = "rendezvous/rules/lease.cc", "rendezvous_rules_test"
BUILDS = {"quickstart": ("OFF", ["ddprun", "train"]), "whole": ("ON", ["all"])}


def copy_of_the_tree(place):
    """The files that git knows, and new ones that it does not ignore."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name, follow_symlinks=False)


def compilations(folder):
    """How many object files ninja has made in a build folder, each one as often as it was made."""
    log = folder / ".ninja_log"
    return sum(line.split("\t")[3].endswith(".o") for line in log.read_text().splitlines()[1:]) if log.exists() else 0


def quiet(*command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: code {done.returncode}\n{done.stdout[-2000:]}")


def measured(folder, work):
    """What work() cost; folder: where ninja writes its log."""
    def processor():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    compiled, used, begin = compilations(folder), processor(), time.monotonic()
    work()
    return {"processor (s)": processor() - used, "wall (s)": time.monotonic() - begin,
            "compilations": compilations(folder) - compiled}


def configure(tree, folder, preset, tests):
    quiet("cmake", "-S", tree, "--preset", preset, "-B", folder, f"-DDDPRUN_TESTS={tests}")


def from_nothing(tree, name, jobs):
    tests, targets = BUILDS[name]
    folder = Path(tempfile.mkdtemp(dir=tree))
    try:
        def work():
            configure(tree, folder, "release", tests)
            quiet("ninja", "-C", folder, f"-j{jobs}", *targets)
        return measured(folder, work)
    finally:
        shutil.rmtree(folder)


def one_change(tree, preset, jobs):
    """The first call builds the test; it is not measured."""
    folder = tree / f"build-{preset}"
    if not folder.exists():
        configure(tree, folder, preset, "ON")
        quiet("ninja", "-C", folder, f"-j{jobs}", TEST)
    with open(tree / RULE, "a") as file:
        file.write("// changed\n")

    def work():
        quiet("ninja", "-C", folder, f"-j{jobs}", TEST)
        quiet("ctest", "--test-dir", folder, "-R", f"^{TEST}$")
    return measured(folder, work)


def measure(options):
    os.environ["CCACHE_DISABLE"] = "1"
    place = Path(os.environ.get("BENCH_DISK", ROOT / "build"))
    place.mkdir(parents=True, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory(dir=place, prefix="bench-build-") as tree:
        tree = Path(tree)
        copy_of_the_tree(tree)
        for name in options.builds.split(","):
            if name == "change":
                rows += report.collect("one changed rule to its test's answer,", ["release", "dev"], options.repeats,
                                       lambda preset: one_change(tree, preset, options.jobs), peer="dev")
            else:
                rows += report.collect(f"{name}, from nothing,", ["release"], options.repeats,
                                       lambda _, name=name: from_nothing(tree, name, options.jobs), peer="release")
    return rows


def more(arguments):
    arguments.add_argument("--builds", default="quickstart,whole,change", help="comma-separated; default %(default)s")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count(), help="of ninja; default %(default)s")


def main():
    chosen = report.options(more)
    unknown = set(chosen.builds.split(",")) - {*BUILDS, "change"}
    if unknown:
        sys.exit(f"--builds: no build {', '.join(sorted(unknown))}; there are quickstart, whole, change")
    before = os.getloadavg()[0]
    rows = measure(chosen)
    print(report.table(rows))
    after = os.getloadavg()[0]
    print(f"\nLoad before {before:.1f}, after {after:.1f}; {os.cpu_count()} processors, ninja -j{chosen.jobs}.")
    for text in report.subjects.notes:
        print("\nNote:", text)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
