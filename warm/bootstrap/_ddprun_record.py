"""Writes in which order a worker imports the packages of the list, and the state of the process then.

One line for each import that the program itself begins: the module, and the fingerprint from before
it in hexadecimal digits. The file is opened for each line, so that the worker has no descriptor more
than usual.
"""
import marshal
import os
import sys
from _thread import get_ident

from _ddprun_fingerprint import fingerprint
from _ddprun_proved import is_listed


def by_import():
    """Whether the finder that calls this is asked by an import. Others may only ask what there is."""
    return sys._getframe(3).f_code.co_name == "_find_and_load_unlocked"


def is_loading(name):
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False)


class Recorder:
    """The first finder on sys.meta_path. It finds nothing."""

    def __init__(self, path):
        self._path = path
        self._pid = os.getpid()
        self._begun = {}  # thread -> the module whose import is in progress, or was the last one

    def find_spec(self, name, path=None, target=None):
        if not is_listed(name) or is_loading(self._begun.get(get_ident())) or not by_import():
            return None
        # A fork of the worker has its own life.
        if os.getpid() == self._pid:
            self._begun[get_ident()] = name
            try:
                self._write("%s\t%s\n" % (name, marshal.dumps(fingerprint()).hex()))
            except Exception:
                pass  # a state without words: nothing is imported early then
        return None

    def _write(self, line):
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            os.write(file, line.encode("utf-8", "surrogateescape"))
        except OSError:
            pass
        os.close(file)


def begin(path):
    sys.meta_path.insert(0, Recorder(path))


def read(text):
    """[(module, state)] of a record, without what does not have this form: a worker may have written it."""
    found = []
    for line in text.split("\n")[:-1]:
        try:
            name, state = line.split("\t")
            found.append((name, marshal.loads(bytes.fromhex(state))))
        except (ValueError, EOFError, TypeError):
            return found
    return found
