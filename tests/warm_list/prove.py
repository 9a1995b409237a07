"""Proves that packages may be imported before the script does (warm/bootstrap/_ddprun_proved.py).

prove.py [MODULE…]: imports the modules, by default the usual ones that are installed, in four fresh processes: twice
as they are, once in another state (rank, environment, folder, umask, filters, logging, signals, limits, locale, …), and
once under strace. It prints each distribution with its version, and what speaks against it:

  - a module, an attribute or a global state that is another one in the other state, though it was the same twice
  - a file that is written, a socket, a process, a thread that a fork does not end, output, random numbers that are drawn

Exit code 1: something speaks against it.
"""
import json
import locale
import logging
import multiprocessing
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings

USUAL = ("typing_extensions", "six", "astunparse", "numpy", "torch", "torch.distributed", "torch._dynamo",
         "torch._inductor", "sympy", "mpmath", "networkx", "jinja2", "fsspec", "filelock", "packaging.version", "tqdm", "triton")
_BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../warm/bootstrap")
# What an import of the list does all the same, and why that is no harm.
_HARMLESS = (
    r'execve\("[^"]*(ldconfig|uname)"',  # questions to the system (ctypes.util, platform)
    r'"/dev/null"',
    # tempfile.gettempdir() tries the folder with a file that it removes.
    r'/[a-z0-9_]{8}", (O_RDWR|O_WRONLY)\|O_CREAT\|O_EXCL', r'unlink\("[^"]*/[a-z0-9_]{8}"\)',
    r'socket\(AF_UNIX, SOCK_STREAM\|SOCK_CLOEXEC\|SOCK_NONBLOCK',  # glibc looks for nscd (getpwuid)
)
# The numbers of the filters by which a warning was judged, and inspect's cache of the files of modules.
_SKIPPED = ("__builtins__", "__cached__", "__spec__", "__loader__", "__warningregistry__", "modulesbyfile")


def _summary(value, depth=0):
    """A text that is the same for equal values in two processes."""
    kind = type(value)
    if kind in (int, float, complex, bool, type(None), bytes, str):
        return re.sub(r"0x[0-9a-f]{6,}", "0x", repr(value))[:2000]
    if issubclass(kind, type(sys)):
        return "module " + value.__name__
    if issubclass(kind, type):
        return "class %s.%s" % (value.__module__, value.__qualname__)
    if kind.__name__ in ("function", "builtin_function_or_method", "method"):
        return "%s %s" % (kind.__name__, value.__qualname__)
    # Without their order: that of a set of objects, and of what is made of it, depends on addresses.
    if depth < 3 and kind in (list, tuple, set, frozenset):
        return "%s(%s)" % (kind.__name__, ", ".join(sorted(_summary(each, depth + 1) for each in value)))
    if depth < 3 and kind is dict:
        return "dict(%s)" % ", ".join(sorted("%s: %s" % (_summary(key, depth + 1), _summary(each, depth + 1))
                                             for key, each in list(value.items())))
    return "object of %s.%s" % (kind.__module__, kind.__qualname__)


def _classes(name, module):
    for value in list(getattr(module, "__dict__", {}).values()):
        if issubclass(type(value), type) and value.__module__ == name:
            yield value


def _dump(before):
    found = {}
    for name, module in sys.modules.items():
        if name in before or name.startswith(("_ddprun", "__mp_main__")):
            continue
        for key, value in list(getattr(module, "__dict__", {}).items()):
            if key not in _SKIPPED and value is not sys.modules:
                found["%s.%s" % (name, key)] = _summary(value)
        for owner in _classes(name, module):
            for key, value in list(vars(owner).items()):
                found["%s.%s.%s" % (name, owner.__qualname__, key)] = _summary(value, 1)
    return found


def _other_state():
    """Another state than that of a fresh process, in all that does not decide what is imported."""
    os.environ.update({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "1",
                       "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "1234", "SLURM_PROCID": "3", "SLURM_LOCALID": "1",
                       "TORCHELASTIC_RESTART_COUNT": "2", "CUDA_VISIBLE_DEVICES": "1", "ANOTHER_VARIABLE": "1",
                       "TZ": "Asia/Tokyo", "OMPI_COMM_WORLD_RANK": "3", "PMI_RANK": "3"})
    time.tzset()
    os.chdir("/usr")
    os.umask(0o077)
    sys.argv[:] = ["another.py", "--fast"]
    warnings.simplefilter("always")
    logging.basicConfig(level=logging.DEBUG)
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda *_: None)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    multiprocessing.set_start_method("spawn")
    sys.excepthook = lambda *_: None
    sys.setrecursionlimit(4000)


def _child(mode, modules, file):
    before = set(sys.modules)
    if mode == "other":
        _other_state()
    random.seed(1)
    drawn = random.getstate()
    imported = []
    for name in modules:
        try:
            __import__(name)
            imported.append(name)
        except ImportError:
            pass
    dump = _dump(before)
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        threads = len(os.listdir("/proc/self/task"))
    files = {name: getattr(getattr(module, "__spec__", None), "origin", None)
             for name, module in sys.modules.items() if name not in before}
    facts = {"threads": threads, "drawn": random.getstate() != drawn, "files": files}
    with open(file, "w") as out:
        json.dump([imported, dump, facts], out)
    os._exit(0)


def _run(mode, modules, file, front=()):
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([*front, sys.executable, os.path.abspath(__file__), "--child", mode, file, *modules],
                          env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s: exit code %d\n%s" % (mode, done.returncode, done.stderr[-4000:]))
    with open(file) as answer:
        return [*json.load(answer), done.stdout + done.stderr]


def _distributions(files):
    sys.path.insert(0, _BOOTSTRAP)
    import _ddprun_proved as proved
    found = {}
    for name, file in files.items():
        if not file or "-packages/" not in file:
            continue
        folder = file[:file.index("-packages/") + len("-packages")]
        top = name.partition(".")[0]
        distribution, version = proved.version_of(top, folder)
        known = proved.is_listed(name) and version in proved._PROVED.get(distribution, "").split()
        found[distribution] = (version, known)
    return found


def main():
    modules = sys.argv[1:] or list(USUAL)
    against = []
    with tempfile.TemporaryDirectory() as folder:
        first = _run("plain", modules, folder + "/1")
        again = _run("plain", modules, folder + "/2")
        other = _run("other", modules, folder + "/3")
        trace = folder + "/trace"
        _run("plain", modules, folder + "/4", ("strace", "-f", "-o", trace, "-e", "trace=openat,mkdir,unlink,rename,"
             "socket,connect,bind,execve,kill,link,symlink,truncate,chmod"))
        with open(trace) as lines:
            traced = list(lines)
    stable = {key for key in {*first[1], *again[1]} if first[1].get(key) == again[1].get(key)}
    against += ["%s: %.100s in one state, %.100s in another" % (key, first[1].get(key), other[1].get(key))
                for key in sorted(stable | set(other[1])) if first[1].get(key) != other[1].get(key)
                and (key in stable or key not in again[1])]
    for _, _, facts, printed in (first, other):
        against += ["prints %.200s" % printed] if printed else []
        against += ["draws random numbers"] if facts["drawn"] else []
        against += ["leaves a thread behind a fork"] if facts["threads"] > 1 else []
    writes = re.compile(r'^\d+ +(openat\(.*, [^,]*(O_WRONLY|O_RDWR|O_CREAT)|(?!openat)\w+\()')
    own = [index for index, line in enumerate(traced) if folder in line or "execve" in line and index == 0]
    for index, line in enumerate(traced):
        if index in own or not writes.search(line) or any(re.search(each, line) for each in _HARMLESS):
            continue
        if not re.search(r"= -1 E|\+\+\+|---|resumed", line):
            against.append("does " + line.strip()[:200])
    print("imported: " + " ".join(first[0]))
    for distribution, (version, known) in sorted(_distributions(first[2]["files"]).items()):
        print("%s %s%s" % (distribution, version, "" if known else ": not on the list"))
    print("\n".join("against it: " + each for each in against) or "nothing speaks against it")
    return 1 if against else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(sys.argv[2], sys.argv[4:], sys.argv[3])
    sys.exit(main())
