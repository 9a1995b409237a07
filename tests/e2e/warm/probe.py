"""Stands in for a package of the list, and keeps all that an import can see."""
import builtins
import gc
import json
import locale
import logging
import multiprocessing
import os
import resource
import signal
import sys
import time
import warnings

# They differ between the workers; what is on the list does not read them.
RANKS = ("MASTER_", "TORCHELASTIC_", "DDPRUN_", "RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "ROLE_")


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return "%03o" % mask


PID = os.getpid()  # of the process that has imported this
SEEN = {
    "variables": sorted(item for item in os.environ.items() if not item[0].startswith(RANKS)),
    "path": list(sys.path),
    "argv": list(sys.argv),
    "filters": [str(each) for each in warnings.filters],
    "logging": [logging.root.level, [str(each) for each in logging.root.handlers]],
    "signals": [str(signal.getsignal(each)) for each in (2, 10, 12, 15)],
    "umask": _umask(),
    "cwd": os.getcwd(),
    "limits": resource.getrlimit(resource.RLIMIT_CORE),
    "start method": multiprocessing.get_start_method(allow_none=True),
    "locale": locale.setlocale(locale.LC_ALL),
    "zone": time.tzname,
    "builtins": sorted(name for name in vars(builtins) if name.isupper()),
    "streams": [type(sys.stdout).__name__, sys.stdout.line_buffering],
    "recursion": sys.getrecursionlimit(),
    "finders": sum(not getattr(each, "__module__", "").startswith("_ddprun") for each in sys.meta_path),
    "collector": gc.isenabled(),
    "cpus": len(os.sched_getaffinity(0)),
    "dumps": json.dumps is not repr,
    "encoder": getattr(json.JSONEncoder.default, "__name__", ""),
    "login": getattr(os.getlogin, "__name__", ""),
}
