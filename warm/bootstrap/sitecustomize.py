"""Runs inside Python's start, before the script of a worker.

ddprun puts this folder first on PYTHONPATH, and says in DDPRUN_WARM what is wanted:

  probe   Say that this file is run, and end. With -E, -I or -S an interpreter does not run it, and
          a server would run the training itself.
  check   Say which imports of the script a server may do early, and end (_ddprun_check.py).
  record  Note what the script imports of the list, and when (_ddprun_record.py), for the server.
  serve   Import that and fork the workers (_ddprun_serve.py). Returns in each worker.

With DDPRUN_FLIGHT_RECORDER the worker also lets ddprun ask what PyTorch's flight recorder has
(_ddprun_recorder.py). With DDPRUN_FRAMEWORK_STOP trainers of known frameworks obey a stop
(_ddprun_frameworks.py). With DDPRUN_SET_ASIDE_TORN a torn checkpoint is moved away first.

Everything that shows ddprun's hand is taken back first. Then the user's own sitecustomize runs, as
if nothing had been before it, and CPython goes on with the script.
"""
import os
import sys


def _take(name):
    return os.environ.pop(name, None)


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


class _Ours:
    """While this lasts, modules of this folder can be imported."""

    def __enter__(self):
        sys.path.insert(0, _HERE)

    def __exit__(self, *_):
        sys.path[:] = [each for each in sys.path if each != _HERE]
        sys.path_importer_cache.pop(_HERE, None)


def _probe(channel):
    os.write(int(channel), b"%d.%d" % sys.version_info[:2])
    os._exit(0)


def _check():
    try:
        with _Ours():
            import _ddprun_check
        _ddprun_check.check()
    finally:
        os._exit(0)


def _serve(channel, variables):
    """Returns in each worker, with the file for its record."""
    try:
        with _Ours():
            from _ddprun_begin import Begin
        begin, failed = Begin(), None
        try:
            begin.run(_chain, variables.split(","))
        except Exception as error:
            failed = error
        with _Ours():
            import _ddprun_serve
        return _ddprun_serve.serve(int(channel), begin), failed
    except BaseException:
        os._exit(1)  # never go on with the script in the server


def _record(imports, recorder, frameworks, torn):
    try:
        with _Ours():
            if torn:
                import _ddprun_frameworks
                _ddprun_frameworks.set_aside_torn()
            if imports:
                import _ddprun_record
                _ddprun_record.begin(imports)
            if recorder:
                import _ddprun_recorder
                _ddprun_recorder.begin(recorder)
            if frameworks:
                import _ddprun_frameworks
                _ddprun_frameworks.begin()
    except Exception:
        pass
    for name in [each for each in sys.modules if each.startswith("_ddprun_")]:
        sys.modules.pop(name, None)


# Only our own entry: a wrapper of the interpreter may have put others before it, and a .pth file may
# have taken the variable away. An empty variable means nothing, but it was there.
def _leave_python_path(was_set):
    path = _take("PYTHONPATH")
    if path is None:
        return
    rest = [each for each in path.split(os.pathsep) if each != _HERE]
    if rest or was_set:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)


def _run():
    mode, channel, imports = _take("DDPRUN_WARM"), _take("DDPRUN_WARM_FD"), _take("DDPRUN_WARM_IMPORTS")
    variables = _take("DDPRUN_WARM_VARIABLES")
    recorder, frameworks = _take("DDPRUN_FLIGHT_RECORDER"), _take("DDPRUN_FRAMEWORK_STOP")
    torn = os.environ.get("DDPRUN_SET_ASIDE_TORN")  # stays, for the callback
    _leave_python_path(was_set=_take("DDPRUN_WARM_PYTHONPATH") is not None)
    _Ours().__exit__()
    failed = None
    if mode == "probe":
        _probe(channel)
    elif mode == "check":
        _check()
    elif mode == "serve":
        imports, failed = _serve(channel, variables or "")
        recorder, frameworks = _take("DDPRUN_FLIGHT_RECORDER"), _take("DDPRUN_FRAMEWORK_STOP") or frameworks
        torn = os.environ.get("DDPRUN_SET_ASIDE_TORN")
    else:
        try:
            _chain()
        except Exception as error:
            failed = error
    _record(imports, recorder, frameworks, torn)
    if failed is not None:
        raise failed


_HERE = os.path.dirname(__file__)
if "DDPRUN_WARM" in os.environ:
    _run()
else:
    _chain()
