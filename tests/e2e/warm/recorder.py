"""What can be seen of a worker at the end of a script, as texts: for the comparison of warm and cold ones.

The last line of each case of tests/e2e/warm/cases calls end(): it writes a record, and fails until there were three
generations (suite.py). Only what the script itself has loaded is looked at before this file imports anything.
"""
import os
import sys

# Python 3.9 imports _bootlocale when it first opens a file as text, and the bootstrap opens some.
_MODULES = sorted(each for each in sys.modules if each not in ("recorder", "mpmath", "_bootlocale"))
_LOADED = set(sys.modules) - {"_bootlocale"}

import ctypes  # noqa: E402
import gc  # noqa: E402
import json  # noqa: E402
import locale  # noqa: E402
import logging  # noqa: E402
import multiprocessing  # noqa: E402
import random  # noqa: E402
import re  # noqa: E402
import signal  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import types  # noqa: E402
import uuid  # noqa: E402
import warnings  # noqa: E402

import heap  # noqa: E402

# Options of prctl(2) that a fork passes on: those that return a value, and those that write it.
_PRCTL = {"DUMPABLE": 3, "KEEPCAPS": 7, "NO_NEW_PRIVS": 39, "THP": 42, "TIMERSLACK": 30}
_PRCTL_WRITTEN = {"PDEATHSIG": 2, "SUBREAPER": 37}
# Attributes that are compared elsewhere, or are caches.
_OTHERWISE = ("meta_path", "modules", "path_importer_cache", "_startTime", "modulesbyfile")
_MAPPED = heap.mapped()
_PLAIN = (int, float, complex, bool, type(None), bytes, str, tuple, list, dict, set, frozenset)


def _read(name):
    try:
        with open("/proc/self/" + name) as file:
            return file.read()
    except OSError as error:
        return type(error).__name__


def _prctl():
    libc, value = ctypes.CDLL(None, use_errno=True), ctypes.c_int(-1)
    found = {name: libc.prctl(number, 0, 0, 0, 0) for name, number in _PRCTL.items()}
    for name, number in _PRCTL_WRITTEN.items():
        libc.prctl(number, ctypes.byref(value))
        found[name] = value.value
    return found


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return "%03o" % mask


def _descriptors():
    found = []
    for each in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            link = re.sub(r"\d+|/generation.*|/attempt.*", "N", os.readlink("/proc/self/fd/%d" % each))
            found.append("%d %s %d" % (each, link, os.get_inheritable(each)))
        except OSError:
            pass  # the one of listdir()
    return found


def _logger(each):
    return "%s %d %s %s %s" % (each.name, each.level, each.disabled, each.propagate, list(map(str, each.handlers)))


def _process():
    lines = "Name|Umask|Groups|Sig(Pnd|Blk|Ign|Cgt)|Shd|Cpus_allowed|NoNewPrivs|Cap|Seccomp:|Threads|THP|Core"
    status = [line for line in _read("status").splitlines() if re.match(lines, line)]
    shared = sorted({re.sub(r"^\S+ (\S+) \S+ (\S+) \S+\s*", r"\1 \2 ", line) for line in _read("maps").splitlines()
                     if line.split()[1].endswith("s")})
    return {
        "status": status, "limits": _read("limits"), "cgroup": _read("cgroup"), "oom_score_adj": _read("oom_score_adj"),
        "coredump_filter": _read("coredump_filter"), "command line": _read("cmdline").split("\0"),
        "shared maps": shared,
        "descriptors": _descriptors(), "threads": threading.active_count(), "cwd": os.getcwd(), "umask": _umask(),
        "session": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()], "nice": os.nice(0),
        "scheduler": [os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))], "prctl": _prctl(),
        "interval timers": [signal.getitimer(each) for each in range(3)], "children": os.times().children_user > 5,
        "environment of the kernel": sorted(each for each in _read("environ").split("\0") if each),
    }


def _python():
    return {
        "environment": sorted(os.environ.items()), "sys.path": sys.path, "sys.argv": sys.argv,
        "orig_argv": getattr(sys, "orig_argv", ()), "flags": sys.flags, "modules": _MODULES,
        "finders": [str(each) for each in sys.meta_path if "_ddprun" not in type(each).__module__],
        "path hooks": len(sys.path_hooks), "cached paths": sorted(sys.path_importer_cache),
        "filters": list(map(str, warnings.filters)), "onceregistry": len(warnings.onceregistry),
        "loggers": sorted(_logger(each) for each in logging.root.manager.loggerDict.values() if hasattr(each, "level")),
        "root logger": [logging.root.level, list(map(str, logging.root.handlers)), logging.root.manager.disable],
        "signals": [str(signal.getsignal(each)) for each in range(1, 32)],
        "start method": multiprocessing.get_start_method(allow_none=True),
        "locale": locale.setlocale(locale.LC_ALL), "zone": time.tzname,
        "collector": [gc.isenabled(), gc.get_threshold(), gc.get_debug()], "recursion": sys.getrecursionlimit(),
        "switch interval": sys.getswitchinterval(),
        "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, sys.gettrace() is None],
        "streams": [(type(each).__name__, each.name, each.encoding, each.errors, each.line_buffering)
                    for each in (sys.stdin, sys.stdout, sys.stderr)],
        "main": [__import__("__main__").__name__, getattr(__import__("__main__"), "__file__", None),
                 str(getattr(__import__("__main__"), "__spec__", None))],
        "main thread": [threading.main_thread().native_id == os.getpid(), threading.main_thread().name],
    }


def _text(value):
    kind = type(value)
    return _repr(value, 0) if kind in _PLAIN else kind.__name__


def _repr(value, depth):
    """repr() without addresses. The order of a set depends on them."""
    kind = type(value)
    if kind is int and value > 1 << 40 and any(begin <= value < end for begin, end in _MAPPED):
        return "an address"
    if depth < 3 and kind in (tuple, list, set, frozenset, dict) and len(value) <= 1000:
        texts = [_repr(each, depth + 1) for each in (value.items() if kind is dict else value)]
        return "%s of %s" % (kind.__name__, sorted(texts) if kind in (set, frozenset) else texts)
    return re.sub(r"0x[0-9a-f]{6,}", "0x", repr(value))


def _modules():
    """The plain values of what is loaded, and the classes of the others."""
    found = {}
    for name in sorted(_LOADED):
        module = sys.modules.get(name)
        if name.startswith(("__main__", "__mp_main__", "recorder")) or not isinstance(module, types.ModuleType):
            continue
        spec = getattr(module, "__spec__", None)
        found["module " + name] = [type(getattr(spec, "loader", None)).__name__, getattr(spec, "_initializing", False)]
        for key, value in list(vars(module).items()):
            if key.startswith("__") or key in _OTHERWISE:
                continue
            found["value %s.%s" % (name, key)] = _text(value)[:30000]
    return found


def _unique():
    """No two workers have these in common."""
    found = {"uuid": uuid.uuid4().hex, "uuid by time": uuid.uuid1().hex, "urandom": os.urandom(8).hex(),
             "random": random.random(), "generator": random.Random().random(),
             "temporary": next(tempfile._get_candidate_names()),
             "key": multiprocessing.current_process().authkey.hex(),
             "start of logging": getattr(logging, "_startTime", 0)}
    if "numpy" in _LOADED:
        numpy = sys.modules["numpy"]
        found["numpy"], found["numpy's new"] = numpy.random.rand(), numpy.random.default_rng().random()
    if hasattr(sys.modules.get("torch"), "rand"):
        torch = sys.modules["torch"]
        found["torch"], found["torch's seed"] = torch.rand(1).item(), torch.initial_seed()
    return found


def _of(values):
    found = {"value of the script " + key: _text(value) for key, value in values.items() if key.isupper()}
    seen = getattr(sys.modules.get("mpmath"), "SEEN", {})
    found.update(("seen by a library: " + key, str(value)) for key, value in seen.items())
    for part in (_process(), _python(), _modules(), {"unique " + key: value for key, value in _unique().items()}):
        found.update((key, str(value)) for key, value in part.items())
    return found


def _wait(seconds, ready):
    end = time.monotonic() + seconds
    while not ready() and time.monotonic() < end:
        time.sleep(0.01)


def _there(pid):
    try:
        with open("/proc/%s/stat" % pid) as file:
            return file.read().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def end(values):
    """Writes the record of this worker, and ends it: rank 0 as the last one, with 3 if more generations are to come."""
    folder, rank, number = (os.environ[each] for each in ("RECORDS", "RANK", "TORCHELASTIC_RESTART_COUNT"))
    # A thread that was joined is still the kernel's for a moment.
    _wait(10, lambda: len(os.listdir("/proc/self/task")) <= threading.active_count())
    found = _of(values)
    # The probe has the process that has imported it; else what was imported early is frozen.
    probe = getattr(sys.modules.get("mpmath"), "PID", None)
    found["warm"] = probe != os.getpid() if probe else gc.get_freeze_count() > 0
    found["pid"] = os.getpid()
    name = "%s/%s." % (folder, number)
    if os.environ.get("HEAP"):
        with open("%s/%s-%s.heap" % (folder, number, rank), "w") as file:
            json.dump(heap.values(), file)
    with open(name + rank + ".new", "w") as file:
        json.dump(found, file)
    os.rename(name + rank + ".new", name + rank)
    os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
    if rank != "0":
        sys.exit(0)
    others = ["%s%d" % (name, each) for each in range(1, int(os.environ["WORLD_SIZE"]))]
    _wait(60, lambda: all(map(os.path.exists, others)))
    for each in others:
        with open(each) as file:
            pid = json.load(file)["pid"]
        _wait(60, lambda: not _there(pid))
    _wait(60, lambda: os.path.exists(folder + "/go"))
    done = len([each for each in os.listdir(folder) if each.endswith(".0")])
    sys.exit(0 if done >= int(os.environ["GENERATIONS"]) else 3)
