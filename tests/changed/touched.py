#!/usr/bin/env python3
"""Which tests a change touches: those of the rooms in which a file has changed, and of all that is built on them.

A test tests folders: a program those of the targets that it links, with the rooms that these use; a script itself, the
files of the repository that it names, the programs that it needs, and what tests/changed/subjects.txt says of it. A test
of which nothing is known runs, and a changed file that nothing tests runs all tests. CI runs all of them anyway.

    tests/changed/touched.py BUILD CHANGED…    prints `test NAME` and `build TARGET`, and why on standard error;
                                              tests/run.sh --changed runs it
"""
import fnmatch
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("subjects.txt")
# A change here can change all that is built.
EVERYTHING = ("cmake", "CMakeLists.txt", "CMakePresets.json", "tests/CMakeLists.txt", "tests/subjects.cmake",
              "tests/support", "tests/run.sh")


# ---- pure: what follows from the facts

class Build:
    """What the build knows: subjects.txt of the build folder (tests/subjects.cmake)."""

    def __init__(self, text):
        self.rooms, self.targets, self.programs = {}, {}, set()
        for line in text.splitlines():
            kind, name, *lists = line.split(";")
            parts = [tuple(filter(None, each.split(","))) for each in lists]
            if kind == "room":
                self.rooms[name] = parts[0]
            else:
                self.targets[name] = (parts[0], parts[1])
            if kind == "program":
                self.programs.add(name)
        self._of_target = {"ddprun_" + room.replace("/", "_"): room for room in self.rooms}

    def folders_of(self, target):
        """All folders that are linked into a target: its own, its libraries' and those of the rooms that these use."""
        seen, folders, left = set(), set(), [target]
        while left:
            name = left.pop()
            if name in seen or name not in self.targets:
                continue
            seen.add(name)
            folders.update(self.targets[name][0])
            left += self.targets[name][1]
            if room := self._of_target.get(name):
                folders.update(self.with_used(room))
        return folders

    def with_used(self, room):
        seen, left = set(), [room]
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                left += self.rooms.get(name, ())
        return seen


class Table:
    """tests/changed/subjects.txt: `apart: ROOM…` and `TEST… : SUBJECT…`, the first line that fits a test counts."""

    def __init__(self, text):
        self.apart, self.lines = set(), []
        for line in text.splitlines():
            line = line.split("#")[0].strip()
            if not line:
                continue
            names, colon, subjects = line.partition(":")
            if not colon:
                raise ValueError(f"no colon: {line}")
            if names == "apart":
                self.apart.update(subjects.split())
            else:
                self.lines.append((names.split(), subjects.split()))

    def of(self, test):
        for names, subjects in self.lines:
            if any(fnmatch.fnmatchcase(test, name) for name in names):
                return subjects
        return None


class Test:
    """target: the name of its program, or None. files: those of its script. programs: the targets that these need."""

    def __init__(self, target=None, files=(), programs=()):
        self.target, self.files, self.programs = target, set(files), set(programs)


def subjects_of(name, test, build, table):
    """The folders and files that a test tests; None: unknown."""
    listed = table.of(name)
    if listed is None and test.target is None:
        return None
    subjects = set(test.files)
    if test.target is not None:
        subjects |= build.folders_of(test.target)
    programs = test.programs | {each[1:] for each in listed or () if each.startswith("@")}
    for program in programs:
        # Of a program's rooms those that are apart have tests of their own.
        subjects |= build.folders_of(program) - table.apart
    return subjects | {each for each in listed or () if not each.startswith("@")}


def place_of(file, folders):
    """The folder in which a file counts: the nearest one above it that is anybody's subject, else its own."""
    parts = file.split("/")[:-1]
    for count in range(len(parts), 0, -1):
        if "/".join(parts[:count]) in folders:
            return "/".join(parts[:count])
    return "/".join(parts)


def touches(file, subjects, folders, named):
    """Whether the file is part of one of the subjects; `*` is any file, `*.md` any page. named: files of scripts."""
    if file in subjects or "*" in subjects:
        return True
    if file in named and file.startswith("tests/"):
        return False  # a script counts where it is named, not for programs whose sources lie beside it
    folder, _, name = file.rpartition("/")
    if name.endswith(".md"):
        return "*.md" in subjects
    if place_of(file, folders) in subjects:
        return True
    # Lists of sources and shared headers belong to what is below them.
    below = [each for each in subjects if each.startswith(folder + "/")] if folder not in folders else ()
    return bool(below) and (name == "CMakeLists.txt" or name.endswith(".h") and any(each in folders for each in below))


def select(changed, tests, build, table):
    """({test: why it runs}, {test: why not}). changed: paths; tests: {name: Test}."""
    subjects = {name: subjects_of(name, test, build, table) for name, test in tests.items()}
    folders = set(build.rooms) | {each for has in subjects.values() for each in has or ()}
    named = {file for test in tests.values() for file in test.files}
    folders -= {file for file in named if "." in file.rsplit("/")[-1]} | {"*", "*.md"}
    runs, left = {}, {}
    for file in changed:
        if any(file == each or file.startswith(each + "/") for each in EVERYTHING):
            return dict.fromkeys(tests, f"{file} can change everything"), {}
        if not any(touches(file, has - {"*"}, folders, named) for has in subjects.values() if has):
            return dict.fromkeys(tests, f"nothing is known of {file}"), {}
    for name, has in subjects.items():
        if not changed:
            left[name] = "nothing has changed"
        elif has is None:
            runs[name] = "nothing is known of it"
        elif file := next((file for file in changed if touches(file, has, folders, named)), None):
            runs[name] = file
        else:
            left[name] = "no changed file is part of what they test"
    return runs, left


def to_build(runs, tests, build, table):
    """The targets that tests need: their own programs, and if a script is one of them all programs that are no tests."""
    def needs_programs(name):
        listed = table.of(name)  # what reads all sources runs nothing of them
        return listed is None or "*" not in listed and (tests[name].programs or any(each[0] == "@" for each in listed))

    own = {tests[name].target for name in runs} - {None}
    scripts = any(tests[name].target is None and needs_programs(name) for name in runs)
    return own | (build.programs - {test.target for test in tests.values()} if scripts else set())


def report(runs, left):
    """The lines that tell people what is run and what is left out, each reason once."""
    lines = []
    for verb, tests in (("runs", runs), ("left out", left)):
        for why in sorted(set(tests.values())):
            names = [name for name in tests if tests[name] == why]
            lines.append(f"{verb}, {len(names)} tests: {why}: {' '.join(names)}")
    return lines


def named_in(text, script, paths):
    """The files of tests and examples that a script names outside of comments: text, its path, all paths."""
    found = set()
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for word in set(re.findall(r"(?:\$\{?\w+\}?)?([\w./-]*\w\.[a-z]+\b)", text)):
        name = word.rsplit("../", 1)[-1].lstrip("/")
        beside = f"{script.rpartition('/')[0]}/{name}"
        ends = [path for path in paths if path.endswith("/" + name) and path.startswith(("tests/", "examples/"))]
        if beside in paths:
            found.add(beside)
        elif len(ends) == 1:
            found.update(ends)
    return found


def programs_in(text):
    """The programs that a script of tests/e2e needs: what it has built, and calls below $bin."""
    words = " ".join(re.findall(r"^ *need_built (.*)$", text, re.M)).split()
    found = {word.rsplit("/", 1)[-1] for word in words} | set(re.findall(r"\$\{?bin\}?/(?:\.\./tests/)?([\w-]+)", text))
    return found | {name for name in ("ddprun", "train") if re.search(rf"\${name}\b", text)}


# ---- the facts

def script_of(command, paths):
    """(the files of the repository that a test's command names, with those that these scripts of tests name in turn;
    the programs that they need)"""
    files, programs = set(), set()
    left = [word.removeprefix(f"{ROOT}/") for word in command if word.startswith(f"{ROOT}/")]
    while left:
        path = left.pop()
        if path in files or path == "tests/run.sh":
            continue
        if path in paths:
            files.add(path)
        elif any(each.startswith(path + "/") for each in paths):
            files.add(path)  # a folder of inputs
        if path in paths and path.startswith("tests/") and path.endswith((".sh", ".py", ".cmake")):
            text = (ROOT / path).read_text(errors="replace")
            left += named_in(text, path, paths)
            programs |= programs_in(text) if path != "tests/e2e/common.sh" else {"ddprun"}
    return files, programs


def main():
    folder, *changed = sys.argv[1:]
    build = Build((Path(folder) / "tests" / "subjects.txt").read_text())
    paths = set(subprocess.run(["git", "-C", str(ROOT), "ls-files"], check=True, capture_output=True,
                               text=True).stdout.split())
    listed = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    tests = {}
    for test in json.loads(listed.stdout)["tests"]:
        command = test.get("command", [])
        target = command[0].rsplit("/", 1)[-1] if command else ""
        tests[test["name"]] = Test(target if target in build.targets else None, *script_of(command, paths))
    table = Table(TABLE.read_text())
    runs, left = select(changed, tests, build, table)
    print("\n".join(report(runs, left)), file=sys.stderr)
    for kind, names in (("test", runs), ("build", sorted(to_build(runs, tests, build, table)))):
        for name in names:
            print(kind, name)


if __name__ == "__main__":
    main()
