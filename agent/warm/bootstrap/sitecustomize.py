"""Runs inside Python's start, before the script of a worker.

ddprun puts this folder first on PYTHONPATH, and says in DDPRUN_WARM what is wanted:

  probe   Say that this file is run, and end. With -E, -I or -S an interpreter does not run it, and
          a server would run the training itself.
  check   Import these modules, say what that costs, and end (_ddprun_check.py).
  record  Note which modules the script imports (_ddprun_record.py), for the server.
  serve   Import these modules and fork the workers (_ddprun_serve.py). Returns in each worker.

With DDPRUN_FLIGHT_RECORDER the worker also lets ddprun ask what PyTorch's flight recorder has
(_ddprun_recorder.py).

Then everything that shows ddprun's hand is taken back, and CPython goes on with the script as if
nothing had been before it.
"""
import os
import sys


def _take(name):
    return os.environ.pop(name, None)


def _begin(here):
    mode, channel = _take("DDPRUN_WARM"), _take("DDPRUN_WARM_FD")
    path, imports = _take("DDPRUN_WARM_PYTHONPATH"), _take("DDPRUN_WARM_IMPORTS")
    if path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = path
    if mode == "probe":
        os.write(int(channel), b"%d.%d" % sys.version_info[:2])
        os._exit(0)
    if mode == "check":
        try:
            import _ddprun_check
            _leave(here)
            _ddprun_check.check()
        finally:
            os._exit(0)
    if mode == "serve":
        try:
            import _ddprun_serve
            _leave(here)  # nothing that is imported sees this folder
            imports = _ddprun_serve.serve(int(channel))
        except BaseException:
            os._exit(1)  # never go on with the script in the server
        sys.path.insert(0, here)
    recorder = _take("DDPRUN_FLIGHT_RECORDER")
    try:
        if imports:
            import _ddprun_record
            _ddprun_record.begin(imports)
        if recorder:
            import _ddprun_recorder
            _ddprun_recorder.begin(recorder)
    except Exception:
        pass
    _leave(here)
    for name in [each for each in sys.modules if each.startswith("_ddprun_")]:
        sys.modules.pop(name, None)


def _leave(here):
    sys.path[:] = [each for each in sys.path if each != here]
    sys.path_importer_cache.pop(here, None)


# The one that this file hides, such as Debian's. If there is none, the error is the one that a cold
# start meets, and CPython ignores it.
def _chain():
    for finder in sys.meta_path:
        spec = finder.find_spec(__name__, None) if hasattr(finder, "find_spec") else None
        if spec is not None:
            break
    else:
        raise ImportError("there is no other sitecustomize", name=__name__)
    from _frozen_importlib import module_from_spec
    module = module_from_spec(spec)
    sys.modules[__name__] = module
    spec.loader.exec_module(module)


if "DDPRUN_WARM" in os.environ:
    _begin(os.path.dirname(__file__))
_chain()
