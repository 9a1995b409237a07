"""Stands in for a package of the list: it does at its import what may be done again in a worker."""
import atexit
import contextlib
import functools
import logging
import os
import threading
import warnings

LOG = logging.getLogger(__name__)
LOG.addHandler(logging.NullHandler())
LOCK = threading.Lock()
WHO = "installed"
warnings.filterwarnings("ignore", message="jinja2 says")
os.environ.setdefault("JINJA_HOME", "/home/jinja")
print("jinja2 is imported")
atexit.register(print, "jinja2 ends")


class Template:
    def __init__(self, text):
        self.text = text


@functools.lru_cache(maxsize=None)
def load(name):
    return contextlib.nullcontext(name)
