"""The user's own sitecustomize in a server: what it prints, and whether it looks at its rank.

A cold worker runs it, too, but with its rank. Its output is printed again by each worker; one that
looks at variables which differ between the workers makes the start cold.
"""
import os
import sys


class Begin:
    """What a process was before the bootstrap has imported anything but this."""

    def __init__(self):
        self.modules = set(sys.modules)  # names of what was imported then
        self.paths = set(sys.path_importer_cache)
        self.printed = (b"", b"")
        self.unfit = ""  # why no worker may be forked

    def run(self, chain, variables):
        """Runs the user's sitecustomize. Passes on its error."""
        end_watch = _watch(variables, self._on_read)
        try:
            with Captured() as captured:
                chain()
        finally:
            end_watch()
            self.printed = captured.texts
            self.modules = set(sys.modules)
            self.paths = set(sys.path_importer_cache)

    def _on_read(self, what):
        self.unfit = self.unfit or "a sitecustomize reads %s" % what


def _watch(variables, tell):
    """Calls tell(what) when one of these is read, or all are. Returns how to end that."""
    plain = type(os.environ)

    class Watched(plain):
        def __getitem__(self, key):
            name = key.decode("utf-8", "replace") if isinstance(key, bytes) else key
            if name in variables:
                tell(name)
            return plain.__getitem__(self, key)

        def __iter__(self):
            tell("all variables")
            return plain.__iter__(self)

    Watched.__name__, Watched.__qualname__ = plain.__name__, plain.__qualname__
    objects = [os.environ, os.environb]
    for each in objects:
        each.__class__ = Watched

    def end():
        for each in objects:
            each.__class__ = plain
    return end


def _memory_file():
    try:
        return os.memfd_create("printed")
    except OSError:  # an old kernel or a sandbox
        import tempfile

        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())


class Captured:
    """Takes what is written to standard output and standard error."""

    def __enter__(self):
        self._kept = [os.dup(1), os.dup(2)]
        self._files = [_memory_file() for _ in self._kept]
        for number, file in enumerate(self._files, 1):
            os.dup2(file, number)
        return self

    def __exit__(self, *_):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass  # closed, or None
        for number, kept in enumerate(self._kept, 1):
            os.dup2(kept, number)
            os.close(kept)
        self.texts = []
        for file in self._files:
            os.lseek(file, 0, os.SEEK_SET)
            self.texts.append(os.read(file, 1 << 20))
            os.close(file)
