"""Opens PyTorch's worker server, so that ddprun can ask what the flight recorder of a worker has.

It listens on a Unix socket in a folder of ddprun's, named after generation and rank, and is opened
when the program has imported torch.distributed: a program without it pays nothing. PyTorch says so
in a warning. A version that has no such server, or a folder that is not there (a container), opens
none.
"""
import ctypes
import os
import sys

_MODULE = "torch.distributed.distributed_c10d"


def _open(folder, name):
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The whole path may be too long for the address of a socket.
        path = "/proc/self/fd/%d/%s" % (directory, name)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        from torch._C._distributed_c10d import _WorkerServer
        server = _WorkerServer(path, -1)
        # Its end would wait for its thread, which a fork of this process does not have.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
    finally:
        os.close(directory)


class _Loader:
    """Loads the module as its own loader does, and then opens the server."""

    def __init__(self, loader, then):
        self._loader, self._then = loader, then

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then()


class _Finder:
    """Waits for the import, and is gone then."""

    def __init__(self, then):
        self._then = then

    def find_spec(self, name, path=None, target=None):
        if name != _MODULE or self not in sys.meta_path:
            return None
        others = sys.meta_path[sys.meta_path.index(self) + 1:]
        sys.meta_path.remove(self)
        for finder in others:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self._then)
                return spec
        return None


def begin(folder):
    name = "%s_%s" % (os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"])

    def opens():
        try:
            _open(folder, name)
        except Exception:
            pass

    if _MODULE in sys.modules:
        opens()
    else:
        sys.meta_path.insert(0, _Finder(opens))
