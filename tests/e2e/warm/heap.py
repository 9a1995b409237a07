"""All values of a worker that can hardly be equal by chance: long texts, large numbers, states of generators.

A value that warm workers of two generations have, and no cold one, was made once, in the server: an id, a key, a folder
or a seed that each process should have for itself. This finds them without a list (suite.py, --heap).
"""
import gc
import hashlib
import random
import sys

_MOST = 3000000  # objects


def mapped():
    """Where something is mapped: numbers of these are addresses."""
    with open("/proc/self/maps") as maps:
        return [tuple(int(each, 16) for each in line.split()[0].split("-")) for line in maps]


def _state(value):
    """What no walk over objects reaches."""
    if isinstance(value, random.Random):
        try:
            return repr(value.getstate()[1][:4])
        except NotImplementedError:
            return None
    name = type(value).__name__
    if name == "SemLock" and isinstance(getattr(value, "name", None), str):
        return value.name
    if name in ("PCG64", "MT19937"):
        return repr(value.state)[:200]
    if name == "Generator" and hasattr(value, "get_state"):
        return repr(bytes(value.get_state().tolist())[:64])
    return None


def _is_ours(value):
    """Whether this is a class, function or object of the tests or of ddprun."""
    module = getattr(value, "__module__", None) if type(value) in (type, type(mapped)) else None
    return isinstance(module, str) and (module in ("heap", "recorder") or module.startswith("_ddprun_"))


def _attributes(value):
    """Objects may keep their attributes without a dictionary until it is asked for."""
    try:
        object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        pass


def values():
    """{digest: what holds it}."""
    ranges, found = mapped(), {}
    seen = {id(vars(sys.modules[each])) for each in ("heap", "recorder", "__main__")}
    waiting = [(name, vars(module)) for name, module in list(sys.modules.items())
               if hasattr(module, "__dict__")]
    while waiting and len(seen) < _MOST:
        holder, value = waiting.pop()
        kind = type(value)
        if id(value) in seen or _is_ours(kind) or _is_ours(value):
            continue
        seen.add(id(value))
        text = _state(value)
        if issubclass(kind, (str, bytes)) and len(value) >= 8:
            text = repr(value[:])
        elif kind is float and len(repr(value)) >= 12:
            text = repr(value)
        elif kind is int and abs(value) > 1 << 31 and not any(begin <= value < end for begin, end in ranges):
            text = repr(value)
        if text is not None:
            found.setdefault(hashlib.sha1(text.encode("utf-8", "replace")).hexdigest()[:16], "%s: %.80s" % (holder, text))
        if kind is dict:
            waiting += [("%s.%s" % (holder, key) if isinstance(key, str) else holder, each)
                        for key, each in list(value.items())]
            waiting += [(holder, key) for key in list(value)]
        elif kind not in (str, bytes, int, float):
            _attributes(value)
            waiting += [("%s %s" % (holder[:100], kind.__name__) if len(holder) < 60 else holder, each)
                        for each in gc.get_referents(value) if type(each).__name__ not in ("module", "frame")]
    return found
