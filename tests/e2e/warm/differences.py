"""A script that changes something, and then imports a library that keeps what it sees (warm_differences.sh).

differences.py CASE FOLDER WHEN: does what CASE says in generations from WHEN on, imports `mpmath`, and says what that
has seen. Generation 0 waits for FOLDER/go and fails; the next one is the last.
"""
import os
import sys
import time

case, folder, when = sys.argv[1:4]
generation = int(os.environ["TORCHELASTIC_RESTART_COUNT"])


def variable():
    os.environ["HUB_HOME"] = "/data/hub"


def unset():
    del os.environ["HUB_MODE"]


def path():
    sys.path.insert(0, folder + "/other")


def argv():
    sys.argv.append("--fast")


def filters():
    import warnings
    warnings.filterwarnings("ignore")


def logging():
    import logging as library
    library.basicConfig(level=library.INFO, format="MINE %(message)s", stream=sys.stdout)


def signals():
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def umask():
    os.umask(0o077)


def cwd():
    os.chdir(folder)


def limits():
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def start_method():
    import multiprocessing
    multiprocessing.set_start_method("spawn")


def locale():
    import locale as library
    library.setlocale(library.LC_ALL, "C.UTF-8")


def zone():
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()


def names():
    import builtins
    builtins.MY_FLAG = "set"


def stream():
    sys.stdout.reconfigure(line_buffering=not sys.stdout.line_buffering)


def trace():
    sys.setrecursionlimit(5000)


def finder():
    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return None
    sys.meta_path.insert(0, Finder)


def collector():
    import gc
    gc.disable()


def cpus():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def patch():
    import json
    json.dumps = repr


def patch_class():
    import json
    json.JSONEncoder.default = lambda self, value: "patched"


def patch_os():
    os.getlogin = lambda: "nobody"


def nothing():
    pass


if generation >= int(when):
    globals()[case]()
import mpmath

lines = ["%s: %s" % item for item in sorted(mpmath.SEEN.items())]
sys.stdout.write("\n".join("generation %d %s" % (generation, each) for each in lines) + "\n")
sys.stdout.flush()
os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
end = time.monotonic() + 60
while generation == 0 and not os.path.exists(folder + "/go") and time.monotonic() < end:
    time.sleep(0.01)
os._exit(3 if generation == 0 else 0)
