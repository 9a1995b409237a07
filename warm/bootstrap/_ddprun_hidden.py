"""In a worker: what the server has imported, hidden until the script asks for it.

The finder gives a module out in the very import that asks for it, with all that its import would
have brought. Before, it compares the state of the worker with that of the server at the same
import, and the functions of the modules that are there with those that the import has found. If
something differs, a cold import would have had another result: the worker ends, and its error file
says why. ddprun then starts all workers again, cold.
"""
import atexit
import os
import sys
from _frozen_importlib import ModuleSpec

from _ddprun_fingerprint import difference, fingerprint
from _ddprun_preload import MISSING, held_by, loggers
from _ddprun_process import end_for_difference
from _ddprun_proved import is_listed
from _ddprun_record import by_import


class Hidden:
    """`preload`: what the server has imported. Made in the process from which the workers are forked. `path`: what
    Python puts before sys.path when the script begins."""

    def __init__(self, preload, path):
        self._path, self._own_paths = path, preload.own_paths
        self._groups, self._apart, self._brought = preload.groups, preload.apart, preload.brought
        self._stage = 0  # so many groups have been given out
        self._rest = {}  # module -> its number of group; the bootstrap's own modules: -1
        self._modules = {}
        self._early = []  # modules given out before their group
        self._error_file, self._pid = "", 0
        for number, modules in enumerate([preload.own, *(each.modules for each in self._groups)], -1):
            self._rest.update(dict.fromkeys(modules, number))
            self._modules.update(modules)
        self._take_back()

    def _take_back(self):
        for group in reversed(self._groups):
            for name in group.loggers:
                loggers().pop(name, None)
            for module, key, old, _ in group.attributes:
                _set(module, key, old)
            sys.meta_path[:] = [each for each in sys.meta_path if each not in group.finders]
            _forget_paths(group.paths)
        if any(group.filters is not None for group in self._groups):
            _set_filters(self._groups[0].filters_before)
        _forget_paths(self._own_paths)
        for name in self._modules:
            sys.modules.pop(name, None)

    def find(self, name):
        """A module, hidden or not."""
        return self._modules.get(name) or sys.modules.get(name)

    def begin(self, environment):
        """In the worker, whose environment this is."""
        self._error_file, self._pid = environment.get("TORCHELASTIC_ERROR_FILE", ""), os.getpid()
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name not in self._rest or not by_import():
            return None
        self._guarded(self._compare, name)
        return ModuleSpec(name, _Given(self, name, self._modules[name]))

    # A fault of this file must not become one of the script.
    def _guarded(self, step, name):
        try:
            step(name)
        except Exception as error:
            self._end("%s: %s" % (type(error).__name__, error))

    def give(self, name):
        self._guarded(self._give_for, name)

    def _give_for(self, name):
        number = self._rest.get(name)
        if number is None:
            return  # another thread has asked meanwhile
        if number == self._stage and name == self._groups[number].name:
            self._give_group(self._groups[number])
        elif is_listed(name) and any(each.changes_state() for each in self._groups[self._stage:number + 1]):
            self._end("%s is imported before %s" % (name, self._groups[self._stage].name))
        else:
            self._give(self._needed([name]), early=True)

    def _compare(self, name):
        if self._stage == len(self._groups):
            return
        group, state = self._groups[self._stage], fingerprint()
        begun = "__file__" in vars(sys.modules["__main__"]) or sys.path[:len(self._path)] == self._path
        if not begun:
            state["sys.path"] = repr(self._path + sys.path)
        what = difference(group.state, state, self._apart, self._stage == 0)
        if what:
            self._end("%s is another one before the import of %s" % (what, name))
        for rows in group.functions.values():
            self._check(rows, name)
        if name == group.name:
            for each in self._early:
                self._check(group.own_functions.get(each, ()), name)

    def _check(self, rows, name):
        for owner, key, value in rows:
            if owner.__dict__.get(key, MISSING) is not value:
                self._end("%s.%s is another one before the import of %s" % (owner.__name__, key, name))

    def _end(self, why):
        end_for_difference(why, self._error_file, self._pid)

    # What importing these modules alone would have brought.
    def _needed(self, names):
        needed, waiting = set(names), list(names)
        while waiting:
            name = waiting.pop()
            for owner in [*held_by(self._modules[name]), *self._brought.get(name, ())]:
                if owner in self._rest and owner not in needed:
                    needed.add(owner)
                    waiting.append(owner)
        return [each for each in self._rest if each in needed]

    def _give_group(self, group):
        for module, key, _, new in group.attributes:
            _set(module, key, new)
        for key, value in group.variables.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
        sys.meta_path += group.finders
        _add_paths(group.paths)
        if group.filters is not None:
            _set_filters(group.filters)
        for stream, text in zip((sys.stdout, sys.stderr), group.printed):
            if text:
                stream.write(text.decode("utf-8", "replace"))
        self._give(self._needed([each for each in group.needs if each in self._rest]))
        self._give([each for each in group.modules if each in self._rest])
        for name, logger in group.loggers.items():
            _add_logger(name, logger)
        self._stage += 1

    def _give(self, names, early=False):
        for name in names:
            number, module = self._rest.pop(name), self._modules[name]
            sys.modules[name] = module
            if number < 0:
                # One of its modules was imported from each folder of a package.
                folders = getattr(module, "__path__", ())
                _add_paths({path: self._own_paths[path] for path in folders if path in self._own_paths})
                continue
            group = self._groups[number]
            for owner, function, arguments, named in group.at_exit:
                if owner == name:
                    atexit.register(function, *arguments, **named)
            if early:
                self._early.append(name)
                for value in list(getattr(module, "__dict__", {}).values()):
                    for each, logger in group.loggers.items():
                        if logger is value:
                            _add_logger(each, logger)


def _forget_paths(paths):
    for path in paths:
        sys.path_importer_cache.pop(path, None)


def _add_paths(paths):
    for path, finder in paths.items():
        sys.path_importer_cache.setdefault(path, finder)


def _set(owner, key, value):
    if value is not MISSING:
        owner.__dict__[key] = value
    else:
        owner.__dict__.pop(key, None)


# As Manager.getLogger() does with a new one.
def _add_logger(name, logger):
    manager = getattr(logger, "manager", None)
    there = manager and manager.loggerDict.get(name)
    if manager is None or hasattr(there, "manager"):
        return
    manager.loggerDict[name] = logger
    if there is not None:
        manager._fixupChildren(there, logger)
    manager._fixupParents(logger)


def _set_filters(filters):
    warnings = sys.modules["_warnings"]
    warnings.filters[:] = filters
    for name in ("_filters_mutated", "_filters_mutated_lock_held"):
        if hasattr(warnings, name):
            try:
                getattr(warnings, name)()
            except RuntimeError:  # 3.14: the lock is not held
                pass


class _Given:
    """The loader of a module that is there already."""

    def __init__(self, hidden, name, module):
        self._hidden, self._name, self._module = hidden, name, module
        self._spec = getattr(module, "__spec__", None)

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        try:
            module.__spec__ = self._spec
        except AttributeError:
            pass
        self._hidden.give(self._name)
