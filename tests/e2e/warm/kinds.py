"""One kind of script for each word: what a worker may do, and how it may end.

Run with and without a fork server, each must print the same and end in the same way (warm.sh).
"""
import argparse
import atexit
import concurrent.futures
import dataclasses
import inspect
import json
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time

import mpmath  # a package that a server may import before the script does


@dataclasses.dataclass
class Point:
    """A class of __main__."""

    x: int
    y: int = 2


def square(n):
    return n * n


def in_processes(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        print(pool.map(square, range(4)))


# These differ from job to job.
HIDDEN = ("MASTER_PORT", "DDPRUN_RUN_KEY", "DDPRUN_STOP_FILE", "DDPRUN_SNAPSHOT_FILE", "TORCHELASTIC_ERROR_FILE",
          "TORCHELASTIC_RUN_ID", "_", "KIND_TAG")


def place():
    """What /proc says about this process."""
    with open("/proc/self/cmdline", "rb") as file:
        print(file.read().split(b"\0")[1:])
    for name in ("comm", "limits", "cgroup", "oom_score_adj"):
        with open("/proc/self/" + name) as file:
            print(file.read())
    with open("/proc/self/status") as file:
        for line in file:
            # Not SigQ: it counts the signals of all processes of the user.
            if re.match("Groups|Sig(Pnd|Blk|Ign|Cgt)|Shd|Cpus_allowed|NoNewPrivs|Umask|Cap|Seccomp:", line):
                print(line, end="")
    print(sorted(os.listdir("/proc/self/fd")), os.getcwd())
    print(os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid())
    with open("/proc/self/environ", "rb") as file:
        found = [each for each in file.read().decode().split("\0") if each]
    print(sorted(each for each in found if each.split("=")[0] not in HIDDEN))
    print(len(found) == len(os.environ), all(os.environ[each.split("=", 1)[0]] == each.split("=", 1)[1] for each in found))
    with open("/proc/%d/comm" % os.getppid()) as file:
        print(file.read())
    print(threading.main_thread().native_id == os.getpid())


def surroundings():
    """What Python says about itself."""
    print(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.executable, sys.prefix)
    print(__name__, __file__, __spec__, sorted(globals())[:12])
    print(sorted(item for item in os.environ.items() if item[0] not in HIDDEN))
    print([type(stream).__name__ + str(stream.line_buffering) for stream in (sys.stdout, sys.stderr)])
    print([(stream.isatty(), stream.seekable(), stream.fileno()) for stream in (sys.stdin, sys.stdout, sys.stderr)])
    print([name for name in sys.modules if "ddprun" in name], "sitecustomize" in sys.modules)
    print(subprocess.run(["env"], capture_output=True, check=True).stdout.count(b"DDPRUN_WARM"))


def late(seconds):
    time.sleep(seconds)
    print("a thread is waited for")


def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)


def handled():
    signal.signal(signal.SIGUSR1, lambda number, frame: print("handled", number))
    os.kill(os.getpid(), signal.SIGUSR1)


def futures():
    with concurrent.futures.ThreadPoolExecutor() as pool:
        print(list(pool.map(square, range(3))))


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--needed", required=True)
    parser.parse_args()


def nested():
    def inner():
        raise KeyError("inner")

    try:
        inner()
    except KeyError as error:
        raise RuntimeError("outer") from error


def at_the_end():
    atexit.register(print, "second")
    atexit.register(print, "first")


def forked():
    pid = os.fork()
    if pid == 0:
        print("child")
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def recursion():
    return recursion()


KINDS = {
    "success": lambda: print("out", json.dumps({"a": 1})),
    "error_output": lambda: print("err", file=sys.stderr),
    "code": lambda: sys.exit(7),
    "text": lambda: sys.exit("a last word"),
    "none": lambda: sys.exit(),
    "system_exit": lambda: (_ for _ in ()).throw(SystemExit(200)),
    "exception": lambda: {}["missing"],
    "nested": nested,
    "recursion": recursion,
    "os_exit": lambda: os._exit(9),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "aborted": os.abort,
    "terminated": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "interrupted": interrupted,
    "handled": handled,
    "at_the_end": at_the_end,
    "thread": lambda: threading.Thread(target=late, args=(0.1,)).start(),
    "thread_fails": lambda: threading.Thread(target=nested).start(),
    "futures": futures,
    "forked": forked,
    "mp_fork": lambda: in_processes("fork"),
    "mp_spawn": lambda: in_processes("spawn"),
    "mp_forkserver": lambda: in_processes("forkserver"),
    "pickled": lambda: print(pickle.loads(pickle.dumps(Point(1))), pickle.dumps(Point(1))),
    "source": lambda: print(inspect.getsource(Point), inspect.getfile(square)),
    "input": lambda: print(repr(sys.stdin.read())),
    "parsed": parsed,
    "subprocess": lambda: print(subprocess.run([sys.executable, "-c", "print(6*7)"], capture_output=True, check=True)),
    "place": place,
    "surroundings": surroundings,
}

if __name__ == "__main__":
    KINDS[sys.argv[1]]()
