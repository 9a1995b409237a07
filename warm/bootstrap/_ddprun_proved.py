"""The packages that a server may import before the script does, by version.

What such an import leaves behind depends on its files alone: not on the rank, and not on the state
of the process, as far as _ddprun_fingerprint.py does not see it. It writes nothing, prints nothing,
and leaves no thread, process or open file. tests/warm_list/prove.py proves this for what is
installed, and says which line belongs here.
"""
import os
import sys

# Distribution: the versions that were proved, without what stands behind "+".
_PROVED = {
    "astunparse": "1.6.3",
    "cuda_bindings": "13.5.0",
    "cuda_pathfinder": "1.9.1",
    "filelock": "3.13.1 3.16.1 3.18.0 3.19.1 3.20.0 3.20.3 4.3.1",
    "fsspec": "2024.6.1 2024.10.0 2025.3.0 2025.5.1 2025.9.0 2025.10.0 2026.1.0 2026.3.0 2026.9.0",
    "jinja2": "3.1.2 3.1.3 3.1.4 3.1.5 3.1.6",
    "markupsafe": "2.1.2 2.1.3 2.1.5 3.0.2 3.0.3 3.0.4",
    "mpmath": "0.0.0 1.3.0",
    "networkx": "3.2.1 3.3 3.4.2 3.5 3.6 3.6.1",
    "numpy": "1.24.2 1.24.4 1.25.2 1.26.4 2.0.2 2.1.3 2.2.6 2.3.5 2.4.5 2.4.6",
    "packaging": "23.0 24.0 24.1 24.2 25.0 26.0 26.4",
    "six": "1.16.0",
    "sympy": "1.11.1 1.12 1.12.1 1.13.1 1.13.3 1.14.0",
    "torch": "1.13.0a0 2.8.0 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0 2.14.1 2.15.0",
    "tqdm": "4.64.1 4.70.1",
    "triton": "3.4.0 3.5.1 3.6.0 3.7.1 3.8.0 3.9.0",
    "typing_extensions": "4.4.0 4.8.0 4.9.0 4.10.0 4.11.0 4.12.2 4.13.2 4.14.0 4.14.1 4.15.0 4.16.0",
}
# Modules of these versions that are not: they make a folder when they are imported.
_EXCEPT = {
    "torch.distributed.nn.jit.instantiator": "2.8.0 2.9.1",
}
# Modules that are not called as their distribution.
_OF = {
    "cuda": ("cuda_bindings", "cuda_pathfinder"),
    "functorch": ("torch",),
    "torchgen": ("torch",),
}

_SITES = ("site-packages", "dist-packages")
_found = {}  # folder -> {distribution: version}


def is_listed(name):
    """Whether a module belongs to a package of the list, in any version."""
    top = name.partition(".")[0]
    return top in _PROVED or top in _OF


def _distributions(folder):
    """What is installed in a folder, by the names of its folders and files."""
    if folder not in _found:
        found = {}
        for entry in os.listdir(folder):
            stem, dot, kind = entry.rpartition(".")
            if dot and kind in ("dist-info", "egg-info"):
                name, _, version = stem.partition("-")
                # "torch-2.15.0+cu132", "numpy-1.24.2-py3.11"
                found[name.lower()] = version.partition("-")[0].partition("+")[0]
        _found[folder] = found
    return _found[folder]


def version_of(name, folder):
    """(distribution, its version or "") of a listed module's package in this folder."""
    top = name.partition(".")[0]
    installed = _distributions(folder)
    wanted = _OF.get(top, (top,))
    return next(((each, installed[each]) for each in wanted if each in installed), (wanted[0], ""))


def why_not(name, spec):
    """Why a server may not import this module, or ""."""
    if spec.origin in ("built-in", "frozen"):
        return ""
    places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    top = name.partition(".")[0]
    # Made by its package, as six.moves.
    if not places and is_listed(name) and type(spec.loader).__module__.partition(".")[0] == top:
        return ""
    if not places:
        return "%s, which has no file," % name
    return next(filter(None, (_why_not_from(name, each) for each in places)), "")


def _why_not_from(name, place):
    if not os.path.isabs(place) or not os.path.exists(place):
        return "%s, which is no file of its own," % name
    top = name.partition(".")[0]
    parts = place.split(os.sep)
    last = max((number for number, part in enumerate(parts) if part in _SITES), default=0)
    if not last:
        own = place.startswith(os.path.dirname(os.__file__) + os.sep)
        return "" if own else "%s from %s" % (top, os.path.dirname(place))
    if not is_listed(name):
        return "%s, which is not on the list of what may be imported early," % top
    distribution, version = version_of(name, os.sep.join(parts[:last + 1]))
    if version in _EXCEPT.get(name, "").split():
        return "%s of %s %s, which is not on the list of what may be imported early," % (name, distribution, version)
    if version not in _PROVED[distribution].split():
        return "%s %s, which is not on the list of what may be imported early," % (
            distribution, version or "of unknown version")
    return ""
