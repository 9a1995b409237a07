"""Imports modules in the server, and finds out which of them must not be imported there.

A module is left out, and with it all that imports it, if during its import

  - a variable that differs between the workers was read by its name: it may have kept the value,
  - a thread was started that a fork does not end: the workers would lack it,
  - a descriptor was opened: the workers would share it.

What was imported cannot be taken back. So the server reports what to leave out, and ends; the next
one imports the rest (Preload.verdict).
"""
import os
import sys
import time

from _ddprun_script import folder_of, hidden_by, imports_of

# Slowly: this many seconds of sleep for each of work.
_SHARE = 2
_OWN = ("os", "_collections_abc", "collections.abc", "_ddprun_preload")

# Known not to bear it: wandb makes folders that the first worker to end deletes for all; MPI is
# started by its import. Arrow starts a thread unless it is told not to.
_NEVER = ("wandb", "mpi4py.MPI")
_CURES = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}


class _LeftOut(BaseException):
    """Ends an import. No `except Exception` around an optional import may catch it."""


def plan_of(texts):
    """What ddprun wants, from keys and values in turn."""
    plan = {"rank": [], "script": [], "leave": [], "import": [], "read": [], "slowly": [], "sent": []}
    for key, value in zip(texts[::2], texts[1::2]):
        plan[key].append(value)
    return plan


def wanted_of(plan):
    """(name, file) of what a plan wants imported, in this order."""
    wanted = [tuple(each.split("\t", 1)) for each in plan["import"]]
    for script in plan["read"]:
        wanted += [(name, "") for name in imports_of(script)]
    return wanted


def _importing():
    """The innermost module whose import is in progress, or ""."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if frame.f_code.co_name == "<module>" and name and name != "sitecustomize":
            return name
        frame = frame.f_back
    return ""


def _reader():
    """The code that reads the environment, beyond Python's own wrappers."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _OWN:
        frame = frame.f_back
    return frame


def _threads():
    return len(os.listdir("/proc/self/task"))


def _descriptors():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink("/proc/self/fd/" + name)
        except OSError:
            pass  # the one of listdir() itself
    return found


def _watch(variables, tell):
    """Calls tell(variable) for each of these that is read by its name. Returns how to end that.

    A walk over all variables reads them, too, and says nothing: libraries look for their own prefix
    in this way.
    """
    plain = type(os.environ)
    walk = [None, set()]  # who walks, and what it has not read yet

    class Watched(plain):
        def __getitem__(self, key):
            name = key.decode("utf-8", "replace") if isinstance(key, bytes) else key
            if name in variables:
                reader = _reader()
                if reader is not None and walk[0] in (reader, reader.f_back) and name in walk[1]:
                    walk[1].discard(name)
                else:
                    tell(name)
            return plain.__getitem__(self, key)

        def __iter__(self):
            walk[:] = _reader(), set(variables)
            return plain.__iter__(self)

    Watched.__name__, Watched.__qualname__ = plain.__name__, plain.__qualname__
    objects = [os.environ, os.environb]
    for each in objects:
        each.__class__ = Watched

    def end():
        walk[0] = None
        for each in objects:
            each.__class__ = plain
    return end


class Preload:
    """One attempt. `plan` has lists: rank (variables), script, leave (modules)."""

    def __init__(self, plan):
        self._variables = set(plan["rank"])
        self._script = "".join(plan["script"])
        self._hidden = hidden_by(folder_of(self._script))
        self._before = set(sys.modules)
        self._left_out = {*plan["leave"], *_NEVER}
        self._found = {}  # left out by this attempt: name -> why
        self._refused = 0  # imports that were ended here
        self._latest = None
        self._known_threads = 1
        self._known_files = {}
        self._files = {}  # what was imported -> its state
        self._cold = None  # why no worker may be forked here at all
        self._seen = dict(os.environ)
        self.written = {}  # what imports have written into the environment; None: removed

    # A finder: it sees the begin of each import.
    def find_spec(self, name, path=None, target=None):
        # Others may only ask whether there is such a module.
        if sys._getframe(2).f_code.co_name != "_find_and_load_unlocked":
            return None
        self._look()
        if name in self._left_out:
            self._refused += 1
            raise _LeftOut(name)
        self._latest = name
        return None

    def _leave_out(self, name, why):
        if name and name not in self._left_out:
            self._found.setdefault(name, why)

    def _look(self):
        if self._slowly:
            now = time.thread_time()
            time.sleep(min(_SHARE * (now - self._cpu), 0.2))
            self._cpu = now
        if _threads() > self._known_threads and self._threads_stay():
            self._known_threads = _threads()
            self._leave_out(self._latest, "starts a thread")
        files = _descriptors()
        new = [link for number, link in files.items() if self._known_files.get(number) != link]
        new = [link for link in new if not link.startswith("/proc/")]
        # A file that is being imported right now is closed soon.
        if new and not any(link.endswith((".py", ".pyc", ".so", ".zip")) for link in new):
            self._leave_out(self._latest, "opens " + new[0])
            self._known_files = files

    @staticmethod
    def _threads_stay():
        # Some libraries end their threads at a fork, and start them again when they need them.
        child = fork_quietly()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        return _threads() > 1

    def _on_read(self, variable):
        self._leave_out(_importing(), "reads " + variable)

    def add(self, wanted, slowly):
        """Imports (name, file) in this order, where they are not imported yet. `slowly`: leaves the
        CPU to others most of the time."""
        self._slowly, self._cpu = slowly, time.thread_time()
        self._known_files = _descriptors()
        cures = {name: value for name, value in _CURES.items() if name not in os.environ}
        os.environ.update(cures)
        end_watch = _watch(self._variables, self._on_read)
        sys.meta_path.insert(0, self)
        try:
            for name, _ in wanted:
                self._add(name)
            self._look()
        finally:
            sys.meta_path.remove(self)
            end_watch()
            for name in cures:
                os.environ.pop(name, None)
        self._check(dict(wanted))
        now = dict(os.environ)
        for name in set(now) | set(self._seen):
            if now.get(name) != self._seen.get(name):
                self.written[name] = now.get(name)
        self._seen = now
        self._remember_files()

    def _remember_files(self):
        for module in list(sys.modules.values()):
            file = getattr(getattr(module, "__spec__", None), "origin", None)
            if isinstance(file, str) and file.startswith("/") and file not in self._files:
                self._files[file] = _state(file)

    def changed(self):
        """A file that has changed since it was imported, or ""."""
        for file, state in self._files.items():
            if _state(file) != state:
                return file
        return ""

    def _unwanted(self, name):
        if name.partition(".")[0] in self._hidden:
            return True
        while name:
            if name in self._left_out or name in self._found:
                return True
            name = name.rpartition(".")[0]
        return False

    def _add(self, name):
        if name in sys.modules or self._unwanted(name):
            return
        refused = self._refused
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            # A worker finds it where the server does not look, such as in a folder that the script
            # has added to sys.path.
            if error.name is None or not (name + ".").startswith(error.name + "."):
                self._found.setdefault(name, "fails")
        except _LeftOut as error:
            self._found.setdefault(name, "imports %s" % error)
        except BaseException as error:
            self._found.setdefault(name, "fails with %s" % type(error).__name__)
        else:
            if self._refused > refused:
                self._found.setdefault(name, "imports what is left out")

    def _check(self, files):
        """Looks for what no leaving out can mend."""
        for name in set(sys.modules) - self._before:
            if name.partition(".")[0] in self._hidden:
                self._cold = "%s in the script's folder hides a module" % name
            wanted = files.get(name)
            spec = getattr(sys.modules.get(name), "__spec__", None)
            if wanted and spec is not None and (spec.origin or "") != wanted:
                self._cold = "%s was imported from another place" % name
        if self._threads_stay() and not self._found:
            self._cold = "an imported module has started a thread"
        try:
            os.waitpid(-1, os.WNOHANG)
            self._cold = "an imported module has started a process"
        except ChildProcessError:
            pass
        if bad_fork():
            self._cold = "an imported module has used CUDA"

    def verdict(self):
        """("ready" | "again" | "cold", texts)."""
        if self._cold:
            return "cold", [self._cold]
        if self._found:
            return "again", [text for item in self._found.items() for text in item]
        return "ready", [str(len(sys.modules) - len(self._before))]


def _state(file):
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def fork_quietly():
    """Python 3.12 warns of a fork while there are threads. There are none of ours."""
    warnings = sys.modules.get("warnings")
    if warnings is None or sys.version_info < (3, 12):
        return os.fork()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def bad_fork():
    """Whether CUDA refuses to work in what is forked from this process."""
    torch = sys.modules.get("torch")
    check = getattr(getattr(torch, "_C", None), "_cuda_isInBadFork", None)
    if check is None:
        return False
    child = fork_quietly()
    if child == 0:
        os._exit(1 if check() else 0)
    return os.waitpid(child, 0)[1] != 0
