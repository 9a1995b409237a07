"""Makes trainers of known frameworks obey ddprun's stop, in a script that knows nothing of it.

Waits for the import of a framework's trainer, and wraps its constructor then: each trainer gets the callback of the
module `ddprun` (packaging/python; here in the folder hooks, so that it need not be installed). Until then nothing is
imported. A version that was not tried is left alone, with a line.
"""
import os
import sys

_HOOKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hooks")
_NAME = "_ddprun_hooks"
# The module that defines the trainer: our module with the callback.
_TRAINERS = {
    "lightning.pytorch.trainer.trainer": "lightning",
    "pytorch_lightning.trainer.trainer": "lightning",
    "transformers.trainer": "transformers",
}


def _say(line):
    if os.environ.get("RANK", "0") == "0":
        print("ddprun: " + line, file=sys.stderr, flush=True)


def _ours(name):
    """A module of the package."""
    import importlib.util
    if _NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            _NAME, os.path.join(_HOOKS, "__init__.py"), submodule_search_locations=[_HOOKS])
        package = sys.modules[_NAME] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)
    return importlib.import_module(_NAME + "." + name)


def _add(trainer, callback):
    if hasattr(trainer, "callback_handler"):
        return trainer.callback_handler.callbacks, lambda: trainer.add_callback(callback())
    return trainer.callbacks, lambda: trainer.callbacks.insert(0, callback())


def _install(module):
    import functools
    from importlib.metadata import version
    framework = module.__name__.partition(".")[0]
    why = _ours("_frameworks").unknown_version(framework, version(framework))
    if why:
        return _say("%s, so --framework-stop leaves it alone" % why)
    original, name = module.Trainer.__init__, _TRAINERS[module.__name__]

    @functools.wraps(original)
    def construct(self, *args, **kwargs):
        original(self, *args, **kwargs)
        there, add = _add(self, lambda: _ours(name).DdprunCallback())
        # One that the script has added itself, from the installed package, is enough.
        if not any(type(each).__name__ == "DdprunCallback" for each in there):
            add()

    module.Trainer.__init__ = construct


class _Loader:
    """Loads the module as its own loader does, and then wraps what it has defined."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            _install(module)
        except Exception as error:
            _say("--framework-stop leaves %s alone: %s: %s" % (module.__name__, type(error).__name__, error))


class _Finder:
    """Waits for the imports of the trainers. It finds nothing of its own."""

    def find_spec(self, name, path=None, target=None):
        if name not in _TRAINERS or self not in sys.meta_path:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1:]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def begin():
    sys.meta_path.insert(0, _Finder())


def set_aside_torn():
    try:
        _ours("_torn").before_start()
    except Exception as error:
        _say("--set-aside-torn moves no checkpoint: %s: %s" % (type(error).__name__, error))
