"""Random programs of building blocks, as cases for suite.py: random_programs.py FIRST HOW-MANY [torch].

A number makes the same program each time. Blocks are separated by empty lines.
"""
import random
import sys

_BLOCKS = """import os; os.environ["OMP_NUM_THREADS"] = "2"
import os; os.environ["LOCAL_RANK"] = os.environ["RANK"]
import os; os.environ.setdefault("CACHE_DIR", "/tmp/cache")
import os; os.environ.pop("HOME", None)
import os, subprocess; os.putenv("SEEN", "1"); CHILD = subprocess.run(["env"], capture_output=True).returncode
import os; os.umask(0o027)
import os; os.makedirs("run", exist_ok=True); os.chdir("run")
import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import os; FORKED = os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1]
import os; RANKS = os.environ["RANK"] + "/" + os.environ["WORLD_SIZE"]
import os; OPENED = os.open("made-" + os.environ["RANK"], os.O_CREAT | os.O_WRONLY)
import os; FOUND = sorted(os.listdir("/proc/self/task"))[1:]
import sys; sys.argv.append("--fast")
import sys; sys.path.insert(0, "/nowhere")
import sys; sys.setrecursionlimit(2500)
import sys; sys.excepthook = lambda *_: None
import sys; sys.stdout.write("a word\\n")
import sys; sys.stdout.reconfigure(line_buffering=True)
import sys; sys.modules["planted"] = sys
import random; random.seed(3); DRAWN = random.random()
import random; MINE = random.Random(4).random()
import uuid; KIND = uuid.uuid5(uuid.NAMESPACE_DNS, "name").hex
import warnings; warnings.filterwarnings("ignore", category=UserWarning)
import warnings; warnings.warn("from the script")
import logging; logging.basicConfig(level=logging.INFO)
import logging; logging.getLogger("jinja2").setLevel(logging.DEBUG)
import logging; logging.getLogger("mine.part").addHandler(logging.NullHandler())
import signal; signal.signal(signal.SIGUSR2, signal.SIG_IGN)
import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
import threading; thread = threading.Thread(target=len, args=("",)); thread.start(); thread.join()
import multiprocessing; multiprocessing.set_start_method("spawn", force=True)
import multiprocessing; LOCKED = multiprocessing.Lock().acquire(timeout=1)
import tempfile, shutil; shutil.rmtree(tempfile.mkdtemp())
import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import locale; locale.setlocale(locale.LC_ALL, "C.UTF-8")
import atexit; atexit.register(print, "the end")
import json; json.dumps = repr
import json; TEXT = json.loads("[1]")
import decimal; decimal.getcontext().prec = 9; THIRD = str(decimal.Decimal(1) / 3)
import collections; collections.Counter.mine = 1
import builtins; builtins.FLAG = True
import gc; gc.disable()
import asyncio; asyncio.run(asyncio.sleep(0))
import concurrent.futures; POOL = list(concurrent.futures.ThreadPoolExecutor(1).map(abs, [-1]))
import subprocess; RAN = subprocess.run(["pwd"], capture_output=True).returncode
import argparse; argparse.ArgumentParser().parse_known_args()
import time; time.sleep(0.01)
import contextlib; contextlib.suppress(Exception)
import six; OF_RANK = six.RANK
import importlib.util; THERE = importlib.util.find_spec("networkx") is not None
exec("EXECUTED = 1 + 1")
def later(): import networkx; return networkx.__name__
try: import not_there
except ImportError: MISSING = True"""
_BLOCKS = _BLOCKS.replace("\ntry: import not_there\nexcept", "\ntry: import not_there;\x00except").split("\n")
_TORCH = """import torch; torch.manual_seed(5); DRAWN = torch.rand(2).tolist()
import torch; torch.set_default_dtype(torch.float64)
import torch; torch.set_num_threads(1)
import torch; MODEL = torch.nn.Linear(2, 2).weight.shape
import torch; torch.use_deterministic_algorithms(True)
import numpy; numpy.random.seed(6); NUMBERS = numpy.random.rand(2).tolist()
import torch.distributed; HAS = torch.distributed.is_available()
import os; os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL\"""".split("\n")
_IMPORTS = ["import mpmath", "import jinja2", "import networkx", "import mpmath\nimport jinja2"]


def program(number, torch):
    choice = random.Random(number)
    blocks = choice.sample(_BLOCKS + (_TORCH if torch else []), choice.randint(1, 7))
    imports = choice.sample(_IMPORTS, choice.randint(1, 3)) + (["import torch"] if torch else [])
    for each in imports:
        # Most scripts begin with their imports.
        blocks.insert(0 if choice.random() < 0.5 else choice.randint(0, len(blocks)), each)
    return "\n\n".join(each.replace("\x00", "\n") for each in blocks)


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
        print("## seed_%d: any\n%s\n" % (seed, program(seed, "torch" in sys.argv[3:])))
