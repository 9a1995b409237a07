"""The server's part of an early import: what it imports, and what came with it.

The imports that a cold worker has recorded are done again in their order, each only while the state
of the server is the one that was recorded (_ddprun_fingerprint.py), and only of packages of the list
and of Python itself (_ddprun_proved.py). One such import with all that it brings is a group. Before
the workers are forked, the groups are taken back; a worker gets each again when the script asks for
it (_ddprun_hidden.py).
"""
import atexit
import os
import sys

from _ddprun_begin import Captured
from _ddprun_fingerprint import difference, fingerprint
from _ddprun_process import fork_quietly
from _ddprun_proved import why_not
from _ddprun_record import by_import

# What an import of the list may change: it is taken back, and done again in the worker.
_REPLAYED = ("variable ", "the warning filters", "logging", "builtins")
MISSING = object()


class Refused(BaseException):
    """Ends an import. No `except Exception` around an optional import may catch it."""


class Group:
    """One import of the script with all that it brings."""

    def __init__(self, name):
        self.name = name
        self.state = fingerprint()  # before it
        self.filters_before = list(_filters())
        self.filters = None  # after it, if they are others then
        self.modules = {}  # name -> module, in the order of their imports
        self.needs = set()  # of the bootstrap's own modules
        self.variables = {}  # what it has written into the environment; None: removed
        self.loggers = {}
        self.finders = []  # added to sys.meta_path
        self.paths = {}  # added to sys.path_importer_cache
        self.at_exit = []  # (module, function, arguments, named arguments)
        self.printed = (b"", b"")
        self.attributes = []  # (module, name, before, after): of modules that were there before it
        self.functions = {}  # module -> what calls will find in it before this import
        self.own_functions = {}  # the same of this group's modules

    def changes_state(self):
        return bool(self.variables or self.filters is not None or any(self.printed))


def _filters():
    return sys.modules["_warnings"].filters


def loggers():
    logging = sys.modules.get("logging")
    return logging.root.manager.loggerDict if hasattr(logging, "root") else {}


def new_paths(known):
    """What was added to sys.path_importer_cache."""
    return {path: finder for path, finder in sys.path_importer_cache.items() if path not in known}


def held_by(module):
    """The names of the modules that a module has in its hands, as such or by a function or class of theirs."""
    for value in list(getattr(module, "__dict__", {}).values()):
        # Not isinstance(): some objects warn when they are asked for their class.
        kind = type(value)
        if issubclass(kind, type(sys)):
            yield value.__name__
        elif issubclass(kind, (type, type(held_by), type(len))):
            yield value.__module__


def functions_of(modules):
    """{name: [(owner, key, value)]}: functions and classes of these modules, and methods of classes of Python's own."""
    found = {}
    for name, module in modules:
        if _is_ours(name):
            continue
        rows = found[name] = []
        for key, value in list(getattr(module, "__dict__", {}).items()):
            # Hooks such as sys.excepthook are there to be set.
            if not callable(value) or key.startswith("__") or key.endswith("hook"):
                continue
            rows.append((module, key, value))
            if issubclass(type(value), type) and value.__module__ == name and _is_of_python(module):
                rows += [(value, each, method) for each, method in list(vars(value).items())
                         if callable(method) or isinstance(method, (staticmethod, classmethod, property))]
    return found


# The script's own module, and those of the bootstrap.
def _is_ours(name):
    return name in ("__main__", "__mp_main__", "sitecustomize") or name.startswith("_ddprun_")


def _is_of_python(module):
    file = getattr(module, "__file__", None) or ""
    return "site-packages" not in file and "dist-packages" not in file


def _importing():
    """The innermost module whose import is in progress, or ""."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if frame.f_code.co_name == "<module>" and name and name != "sitecustomize":
            return name
        frame = frame.f_back
    return ""


def _threads():
    return len(os.listdir("/proc/self/task"))


# Some libraries end their threads at a fork, and start them again when they need them.
def _threads_after_fork():
    child = fork_quietly()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return _threads()


def _descriptors():
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add((int(name), os.readlink("/proc/self/fd/" + name)))
        except OSError:
            pass  # the one of listdir() itself
    return found


def _bad_fork():
    """Whether CUDA refuses to work in what is forked from this process."""
    check = getattr(getattr(sys.modules.get("torch"), "_C", None), "_cuda_isInBadFork", None)
    if check is None:
        return False
    child = fork_quietly()
    if child == 0:
        os._exit(1 if check() else 0)
    return os.waitpid(child, 0)[1] != 0


def _state(file):
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class Preload:
    """`begun`: what the process was before it has imported anything (_ddprun_begin.py).
    `apart`: the variables that differ between the workers. `pace`: called at each import. `leave`: imports at which an
    earlier server had to stop, and why."""

    def __init__(self, begun, apart, pace, leave=()):
        self.apart = apart
        self.failed = ""  # the import behind others at which this server had to stop
        self._leave = dict(leave)
        self.groups = []
        self.brought = {}  # module -> what its import was the first to import
        self.partly = ""  # why not all is imported that the workers import
        self._pace = pace
        self._refused = ""  # why an import was ended
        self._files = {}  # what was imported -> its state
        self._known_files = _descriptors()
        self._known = set(begun.modules)
        self.own = self._new_modules()  # what the bootstrap needs itself
        self.own_paths = new_paths(begun.paths)

    # A finder: it sees the begin of each import.
    def find_spec(self, name, path=None, target=None):
        self._pace()
        for each in sys.meta_path[sys.meta_path.index(self) + 1:]:
            spec = each.find_spec(name, path, target)
            if spec is None:
                continue
            why = why_not(name, spec) if by_import() else ""
            if why:
                self._refused = why
                raise Refused(why)
            self.brought.setdefault(_importing(), set()).add(name)
            return spec
        return None

    def add(self, records):
        """Imports what is new in the records of the workers. Returns why no worker may be forked, or ""."""
        begun = list(getattr(sys, "argv", ()))
        try:
            return self._add(*(records or [[]]))
        finally:
            sys.argv[:] = begun

    def _add(self, first, *others):
        self.partly = ""
        for number, (name, state) in enumerate(first):
            if name in sys.modules:
                continue
            # It becomes the file of the module after the site initialisation.
            if state and sys.argv[:1] == ["-m"]:
                sys.argv[0] = state.get("sys.argv[0]", "-m")
            self.partly = self._leave.get(name) or self._not_now(name, state, first[:number], others)
            if self.partly:
                break
            behind = name if self.groups else ""
            why = self._import(name) or self._left_behind()
            if why:
                self.failed = behind
                return why
        if not self.groups:
            return self.partly or "the script imports nothing that may be imported early, such as torch or numpy"
        return ""

    def _not_now(self, name, state, earlier, others):
        mine, seen = fingerprint(), {each for each, _ in earlier}
        for record in [[(name, state)], *others]:
            for each, at in record:
                if each == name:
                    what = at and difference(at, mine, self.apart, not self.groups)
                    if what:
                        return "the script changes %s before it imports %s" % (what, name)
                    break
                if each not in seen:
                    return "the workers do not import %s in the same order" % name
        return ""

    def _import(self, name):
        group, variables, known, finders = Group(name), dict(os.environ), set(loggers()), list(sys.meta_path)
        paths = set(sys.path_importer_cache)
        group.functions = functions_of(sys.modules.items())
        attributes = {each: dict(module.__dict__) for each, module in sys.modules.items()
                      if hasattr(module, "__dict__") and not _is_ours(each)}
        why = self._run(group)
        if why:
            return why
        after = fingerprint()
        changed = difference(_unreplayed(group.state), _unreplayed(after), self.apart)
        if changed:
            return "the import of %s changes %s" % (name, changed)
        for key in sorted({*variables, *os.environ}):
            if variables.get(key) != os.environ.get(key):
                group.variables[key] = os.environ.get(key)
        if group.state["the warning filters"] != after["the warning filters"]:
            group.filters = list(_filters())
        group.loggers = {each: logger for each, logger in loggers().items() if each not in known}
        group.finders = [each for each in sys.meta_path if each not in finders]
        group.paths = new_paths(paths)
        group.modules = self._new_modules()
        group.needs = {each for module in group.modules.values() for each in held_by(module) if each in self.own}
        group.own_functions = functions_of(group.modules.items())
        for each, old in attributes.items():
            module = sys.modules.get(each)
            now = getattr(module, "__dict__", old)
            group.attributes += [(module, key, old.get(key, MISSING), now.get(key, MISSING))
                                 for key in [*old, *(key for key in now if key not in old)]
                                 if old.get(key, MISSING) is not now.get(key, MISSING)]
        self.groups.append(group)
        return ""

    def _run(self, group):
        plain = atexit.register

        def register(function, *arguments, **named):
            group.at_exit.append((_importing(), function, arguments, named))
            return function

        atexit.register = register
        sys.meta_path.insert(0, self)
        try:
            with Captured() as captured:
                __import__(group.name)
            group.printed = captured.texts
        except Refused:
            pass
        except BaseException as error:
            return "the import of %s fails with %s" % (group.name, type(error).__name__)
        finally:
            sys.meta_path.remove(self)
            atexit.register = plain
        for module in list(sys.modules.values()):
            for key, value in list(getattr(module, "__dict__", {}).items()):
                if value is register:
                    setattr(module, key, plain)
        return "%s imports %s" % (group.name, self._refused) if self._refused else ""

    def _new_modules(self):
        new = {name: module for name, module in sys.modules.items()
               if name not in self._known and not name.startswith("_ddprun_")}
        self._known.update(new)
        for module in new.values():
            file = getattr(getattr(module, "__spec__", None), "origin", None)
            if isinstance(file, str) and file.startswith("/"):
                self._files[file] = _state(file)
        return new

    def changed(self):
        """A file that has changed since it was imported, or ""."""
        return next((file for file, state in self._files.items() if _state(file) != state), "")

    def _left_behind(self):
        if _threads() > 1 and _threads_after_fork() > 1:
            return "an imported module has started a thread"
        opened = [link for _, link in _descriptors() - self._known_files if not link.startswith("/proc/")]
        if opened:
            return "an imported module has opened %s" % opened[0]
        try:
            os.waitpid(-1, os.WNOHANG)
            return "an imported module has started a process"
        except ChildProcessError:
            pass
        return "an imported module has used CUDA" if _bad_fork() else ""


def _unreplayed(state):
    return {what: text for what, text in state.items() if not what.startswith(_REPLAYED)}
