"""Runs small scripts cold and warm, and says what differs.

suite.py DDPRUN PYTHON FOLDER [--jobs=N --only=NAME,… --generations=N --modes=off,auto,always] CASES…: each file of cases
has scripts, which begin with "## NAME: HOW [ARGUMENT…]". HOW is what the second and the third generation must be: "warm",
"cold" (for a reason that the log has) or "any". What follows "#> FILE" is a module beside the script. A case with the
argument -m is run as a module.

Each script runs in three jobs of two workers: cold, `--warm=auto` (cold, warm, warm again), and `--warm=always`, as the
second job of a script. Each worker records what can be seen of it (recorder.py), with HEAP in the environment also its
heap (heap.py). What is the same in all cold generations of a rank must be so in warm ones; what differs in all cold
workers must differ in all workers of the jobs.
"""
import concurrent.futures
import copy
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
READY = re.compile("a fork server for warm starts is ready|cold, because|no worker can be forked, because")
# What belongs to the record, caches, and what is so in each process that Python has forked.
END = """

if __name__ == "__main__":
    import recorder
    recorder.end(globals())
"""
ABORTED = "terminate called without an active exception"
LOST = "would differ from its warm start"
HARMLESS = ("warm", "pid", "value mpmath.PID", "value uuid._last_timestamp", "value re._cache", "value re._cache2",
            "value threading._shutdown_locks", "value threading._active", "value inspect._filesbymodname",
            "value torch.cuda._queued_calls",
            # Names of attributes that it gives to modules of the same process, and of no file or message.
            "value torch.distributed._composable.contract.REGISTRY_KEY",
            "value torch.distributed._composable.contract.STATE_KEY",
            "value torch.jit._builtins._builtin_table")  # by the addresses of functions
OF_JOB = re.compile(r"ddprun[-_.][\w.-]+|\b\d{4,}\b|TORCHELASTIC_RESTART_COUNT'?[,=] ?'?\d|RECORDS'?[,=] ?'?[^',\]]+|"
                    r"DDPRUN_RUN_KEY'?[,=] ?'?[\w-]+|TORCHELASTIC_RUN_ID'?[,=] ?'?[\w-]+|DDPRUN_TEST_JOB'?[,=] ?'?\w+|"
                    r"\b(g|generation)\d\b")


class Case:
    def __init__(self, head, text):
        name, _, how = head.partition(":")
        self.generations, self.modes = 3, ("off", "auto", "always")
        self.name, words = name.strip(), how.split()
        self.how, self.arguments = words[0], words[1:]
        self.text, *others = re.split(r"^#> *", text, flags=re.M)
        self.files = dict(each.split("\n", 1) for each in others)


def cases_of(text):
    return [Case(*each.split("\n", 1)) for each in re.split(r"^## ", text, flags=re.M)[1:]]


class Run:
    """One job of a case, and what its workers recorded: {(generation, rank): {what: text}}."""

    def __init__(self, setup, case, mode):
        ddprun, python, folder = setup
        self.mode, self.folder = mode, "%s/%s/%s" % (folder, case.name, mode)
        place = "%s/%s" % (folder, case.name)
        records, self.log = self.folder + "/records", self.folder + "/err"
        os.makedirs(records)
        os.makedirs(self.folder + "/work")
        if mode != "auto":
            open(records + "/go", "w").close()
        environment = {**os.environ, "RECORDS": records, "PYTHONPATH": HERE,
                       "GENERATIONS": str(case.generations), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
        target = ["-m", "script"] if "-m" in case.arguments else [place + "/script.py"]
        if "-m" in case.arguments:
            environment["PYTHONPATH"] += ":" + place
        arguments = [each for each in case.arguments if each != "-m"]
        command = [ddprun, "--standalone", "--no-label", "-v", "--nproc-per-node=2", "--max-restarts=9", "--crash-loop=0",
                   "--warm=" + mode, "--redirects=3", "--log-dir=" + self.folder + "/output", "--python", python, *target,
                   *arguments]
        with open(self.log, "w") as errors:
            job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, env=environment,
                                   cwd=self.folder + "/work")
            self.code = self._wait(job, records)
        with open(self.log, errors="replace") as file:
            self.said = file.read()
        self.output = sorted(text for name, text in self.texts("output").items() if name.endswith("out.log") and text)
        self.records = {}
        for file in glob.glob(records + "/*.[0-9]"):
            number, rank = os.path.basename(file).split(".")
            with open(file) as record:
                self.records[int(number), int(rank)] = json.load(record)
        self.files = self.texts("work")

    def texts(self, part):
        found = {}
        for name in glob.glob("%s/%s/**" % (self.folder, part), recursive=True):
            if os.path.isfile(name):
                with open(name, errors="replace") as file:
                    found[name[len(self.folder):]] = plain(file.read(), self.mode)
            else:
                found[name[len(self.folder):]] = "folder"
        return found

    def _wait(self, job, records):
        end, begin = time.monotonic() + 150, time.monotonic()
        while job.poll() is None and time.monotonic() < end:
            with open(self.log) as file:
                told = READY.search(file.read())
            # What imports nothing of the list is never told of.
            first = os.path.exists(records + "/0.0") and time.monotonic() - begin > 12
            if told or first:
                open(records + "/go", "w").close()
                break
            time.sleep(0.05)
        try:
            return job.wait(max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
            return "none in 150 s"

    def warm(self):
        return sorted({number for (number, _), record in self.records.items() if record["warm"]})


def played(setup, case, mode):
    """A run that says something: PyTorch 2.15 aborts now and then while a worker's interpreter ends, whoever started it
    (pytorch issue 190489)."""
    for left in reversed(range(5)):
        run = Run(setup, case, mode)
        if not left or not any(ABORTED in text for text in run.texts("output").values()):
            return run
        shutil.rmtree(run.folder)


def plain(text, mode):
    return OF_JOB.sub("N", text).replace("/%s/" % mode, "/MODE/")


def differences(cold, warm):
    """What a job has that a cold one has not."""
    found = []
    if cold.code != warm.code:
        found.append("exit code %s, cold %s" % (warm.code, cold.code))
    lost = LOST in warm.said
    # What its workers had written by then is there, too.
    if not set(cold.output) <= set(warm.output) if lost else warm.output != cold.output:
        found.append("output %.300r, cold %.300r" % (warm.output, cold.output))
    if not lost and warm.files != cold.files:
        found.append("files %.300s, cold %.300s" % (warm.files, cold.files))
    # One rank of a generation that is lost may have got as far as its record.
    if len(warm.records) < len(cold.records) if lost else len(warm.records) != len(cold.records):
        found.append("%d records, cold %d" % (len(warm.records), len(cold.records)))
    for rank in (0, 1):
        before = [record for (_, each), record in sorted(cold.records.items()) if each == rank]
        after = [(number, record) for (number, each), record in sorted(warm.records.items()) if each == rank]
        for what in sorted({key for each in before for key in each} | {key for _, each in after for key in each}):
            values = {plain(str(each.get(what)), cold.mode) for each in before}
            if len(values) != 1 or what in HARMLESS or what.startswith("unique "):
                continue
            found += ["%s: %.700s, cold %.700s (generation %d, rank %d%s)" % (
                what, *_apart(plain(str(record.get(what)), warm.mode), next(iter(values))), number, rank,
                ", warm" if record["warm"] else "")
                for number, record in after if plain(str(record.get(what)), warm.mode) not in values]
    return found


def _apart(one, other):
    """Two texts from where they differ on."""
    at = max(0, len(os.path.commonprefix([one, other])) - 30)
    return one[at:at + 200], other[at:at + 200]


def not_unique(runs):
    """What all cold workers have for themselves, and others share."""
    cold = list(runs[0].records.values())
    every = [record for run in runs for record in run.records.values()]
    found = []
    for what in sorted(set.intersection(*map(set, cold)) if cold else ()):
        if what in HARMLESS or what.endswith("_addr") or not what.startswith(("unique ", "value ")):
            continue
        if len({str(each[what]) for each in cold}) == len(cold):
            values = [str(each.get(what)) for each in every]
            # Two workers that begin together may read the same time.
            most = 2 if what == "unique start of logging" else 1
            again = {each for each in values if values.count(each) > most}
            found += ["%s is not unique: %.100s" % (what, each) for each in sorted(again)]
    return found


def made_once(runs):
    """Values that warm workers of two generations have, and no cold one (heap.py)."""
    cold, warm = set(), {}
    for run in runs:
        for (number, rank), record in run.records.items():
            name = "%s/records/%d-%d.heap" % (run.folder, number, rank)
            if not os.path.exists(name):
                continue
            with open(name) as file:
                values = json.load(file)
            if record["warm"]:
                for each, what in values.items():
                    warm.setdefault((run.mode, each), {})[number] = what
            else:
                cold.update(values)
    return ["made once, for all warm workers: %s" % next(iter(numbers.values()))
            for (_, each), numbers in sorted(warm.items()) if each not in cold and len(numbers) > 1]


def judge(setup, case):
    """(what differs, which generations were warm) of a case."""
    folder = "%s/%s" % (setup[2], case.name)
    os.makedirs(folder)
    with open(folder + "/script.py", "w") as file:
        file.write(case.text.rstrip("\n") + END)
    for name, text in case.files.items():
        with open("%s/%s" % (folder, name), "w") as file:
            file.write(text)
    cold, auto, *more = runs = [played(setup, case, mode) for mode in case.modes]
    always = more[0] if more else auto
    found = ["--warm=%s: %s" % (each.mode, text) for each in runs[1:] for text in differences(cold, each)]
    found += not_unique(runs) + made_once(runs)
    if len(cold.records) != 2 * case.generations:
        found.append("cold, it ends with %s: %s" % (cold.code, cold.said[-600:]))
    # From the text of a script nobody knows all that it does between its imports.
    if case.how == "warm" and (auto.warm() != [1, 2] or always.warm()[-2:] != [1, 2] and LOST not in always.said):
        why = re.findall("cold, because.*|would differ.*", auto.said + always.said)
        found.append("warm were %s, and %s: %s" % (auto.warm(), always.warm(), why))
    if case.how == "cold" and (auto.warm() or "cold, because" not in auto.said):
        found.append("warm were %s: %s" % (auto.warm(), auto.said[-600:]))
    return found, "".join("W" if each in auto.warm() else "c" for each in range(case.generations))


def shrunk(setup, case):
    """The program that is left when all blocks are gone without which it still differs."""
    blocks = case.text.strip().split("\n\n")
    for number in reversed(range(len(blocks))):
        less = blocks[:number] + blocks[number + 1:]
        tried = copy.copy(case)
        tried.name, tried.text = "%s_without_%d" % (case.name, number), "\n\n".join(less) + "\n"
        if less and judge(setup, tried)[0]:
            blocks = less
    return "\n".join(blocks)


def main():
    words = [each for each in sys.argv[1:] if not each.startswith("--")]
    options = dict(each[2:].split("=") for each in sys.argv[1:] if each.startswith("--"))
    setup, cases = words[:3], []
    for name in words[3:]:
        with open(name) as file:
            cases += cases_of(file.read())
    only = options.get("only")
    cases = [each for each in cases if not only or each.name in only.split(",")]
    for each in cases:
        each.generations = int(options.get("generations", 3))
        each.modes = options.get("modes", "off,auto,always").split(",")
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(int(options.get("jobs", 4))) as pool:
        for case, (found, ways) in zip(cases, pool.map(lambda each: judge(setup, each), cases)):
            print("%s: %s %s" % (case.name, ways, "differs" if found else "as cold"), flush=True)
            for each in found[:12]:
                print("    " + each)
            if found and case.name.startswith("seed_"):
                print("the program:\n%s\nas short as it still differs:\n%s" % (case.text.strip(), shrunk(setup, case)))
            bad += bool(found)
    print("%d of %d scripts differ" % (bad, len(cases)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
