"""What an import may depend on besides files and rank: the state of the process, as texts.

Two processes in the same state have equal texts. What is read here is only looked at: no module is
imported for it, and nothing of the process changes.
"""
import builtins
import os
import sys
import time

from _ddprun_proved import is_listed


def _built_in(name):
    """A module of the interpreter itself. One that is not in sys.modules is not there afterwards."""
    there = name in sys.modules
    module = __import__(name)
    if not there:
        sys.modules.pop(name, None)
    return module


_locale, _signal, _warnings = _built_in("_locale"), _built_in("_signal"), _built_in("_warnings")
_SIGNALS = range(1, 65)
# Scripts set these between their imports and their first step. What is imported then, deep in PyTorch, does not look at
# them (tests/warm_list/prove.py).
_FIRST_ONLY = ("the signal handlers",)
# Where nothing has been set.
_NO_LOGGING = "root WARNING"
_NO_TORCH = "['torch.float32', 'True', 'False']"


def fingerprint():
    """{what: text}. A variable of the environment is called "variable NAME"."""
    found = {"variable " + name: value for name, value in os.environ.items()}
    found["sys.path"] = repr(sys.path)
    argv = getattr(sys, "argv", [])
    found["sys.argv[0]"], found["sys.argv"] = "".join(map(str, argv[:1])), repr(argv[1:])
    found["the warning filters"] = _filters()
    found["logging"] = _logging()
    found["the signal handlers"] = _signals()
    found["the working directory"] = _folder()
    found["the start method of multiprocessing"] = _start_method()
    found["the locale or the time zone"] = repr((_locale.setlocale(_locale.LC_ALL), time.tzname, time.timezone))
    found["builtins"] = repr(sorted(vars(builtins)))
    found["the standard streams"] = repr([_stream(name) for name in ("stdin", "stdout", "stderr")])
    found["the hooks of the interpreter"] = repr(_interpreter())
    found["the number of CPUs"] = str(len(os.sched_getaffinity(0)))
    found["PyTorch's defaults"] = _torch()
    found["the umask or the blocked signals"] = _status()
    with open("/proc/self/limits") as file:
        found["the limits"] = file.read()
    return found


def difference(wanted, found, apart, first=True):
    """The first thing that is not the same, or "". `apart`: variables that do not count. `first`: before the first
    import of the list."""
    for what in sorted({*wanted, *found}):
        if wanted.get(what) == found.get(what) or (what in _FIRST_ONLY and not first):
            continue
        if what.startswith("variable ") and what[9:] in apart:
            continue
        # With -m it becomes the file of the module after the site initialisation.
        if what == "sys.argv[0]" and "-m" in (wanted.get(what), found.get(what)):
            continue
        return what
    return ""


def _name(value):
    kind = value if isinstance(value, type) or hasattr(value, "__qualname__") else type(value)
    return "%s.%s" % (getattr(kind, "__module__", ""), getattr(kind, "__qualname__", ""))


def _loaded(name):
    return sys.modules.get(name)


def _filters():
    return repr([_warnings.filters, _warnings._defaultaction])


def _handler(each):
    formatter = getattr(each, "formatter", None)
    return (repr(each), each.level, getattr(formatter, "_fmt", None), len(each.filters))


def _logger(each):
    return (each.level, each.disabled, each.propagate, len(each.filters),
            [_handler(handler) for handler in each.handlers])


def _logging():
    logging = _loaded("logging")
    if logging is None or not hasattr(logging, "lastResort"):
        return _NO_LOGGING
    root, manager = logging.root, logging.root.manager
    text = "root " + logging.getLevelName(root.level)
    more = []
    if root.handlers or root.filters or root.disabled:
        more.append(_logger(root))
    if manager.disable or manager.loggerClass or logging._loggerClass is not logging.Logger:
        more.append((manager.disable, repr(manager.loggerClass), repr(logging._loggerClass)))
    if not logging.raiseExceptions or logging.lastResort is not logging._defaultLastResort:
        more.append((logging.raiseExceptions, repr(logging.lastResort)))
    if len(logging._levelToName) != 6 or logging._logRecordFactory is not logging.LogRecord:
        more.append((sorted(logging._levelToName.items()), repr(logging._logRecordFactory)))
    for name in sorted(manager.loggerDict):
        logger = manager.loggerDict[name]
        if is_listed(name) and isinstance(logger, logging.Logger):
            more.append((name, _logger(logger)))
    return text + (" " + repr(more) if more else "")


def _signals():
    found = []
    for number in _SIGNALS:
        try:
            handler = _signal.getsignal(number)
        except ValueError:
            continue
        if handler not in (None, 0):
            found.append((number, handler if isinstance(handler, int) else _name(handler)))
    return repr(found)


def _status():
    wanted = (b"Umask", b"SigBlk")
    with open("/proc/self/status", "rb") as file:
        return repr([line.strip() for line in file if line.split(b":")[0] in wanted])


def _folder():
    try:
        return os.getcwd()
    except OSError:
        return "gone"


def _start_method():
    context = getattr(_loaded("multiprocessing.context"), "_default_context", None)
    actual = getattr(context, "_actual_context", None)
    return repr(getattr(actual, "_name", None))


def _stream(name):
    stream = getattr(sys, name, None)
    if stream is not getattr(sys, "__%s__" % name, None):
        return _name(stream)
    return [getattr(stream, each, None) for each in ("encoding", "errors", "line_buffering", "write_through")]


def _interpreter():
    # Finders behind this one are asked for what is not there.
    finders = "|".join(_name(each) for each in sys.meta_path if not _name(each).startswith("_ddprun_"))
    gc = _loaded("gc")
    return [
        finders.partition("PathFinder")[0],
        [_name(each) for each in sys.path_hooks],
        sys.gettrace() is None, sys.getprofile() is None, sys.getrecursionlimit(), sys.getswitchinterval(),
        sys.dont_write_bytecode, sys.pycache_prefix, sys.getdlopenflags(), sys.warnoptions,
        getattr(sys, "tracebacklimit", None), gc is None or (gc.isenabled(), gc.get_debug()) == (True, 0),
    ]


def _torch():
    torch = _loaded("torch")
    asked = ("get_default_dtype", "is_grad_enabled", "are_deterministic_algorithms_enabled")
    if not all(hasattr(torch, each) for each in asked):
        return _NO_TORCH
    return repr([str(getattr(torch, each)()) for each in asked])
