"""The private copy in which a rehearsal plays. A mount namespace of this process and its children has an overlay over
the working directory, the home, the folders of temporary files and those that arguments name. Writes go into memory.
All else is read-only. Each run gets a fresh copy. Linux 5.12 or newer; 5.11 for users who are not root."""
from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import tempfile
from typing import Dict, List, Optional, Sequence, Tuple

NEWNS, NEWUSER = 0x20000, 0x10000000
BIND, REC, PRIVATE, REMOUNT, NOSUID, NODEV, DETACH = 0x1000, 0x4000, 0x40000, 0x20, 2, 4, 2
SETATTR, RDONLY, RECURSIVE, AT_CWD = 442, 1, 0x8000, -100
libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """No private copy is possible here, with the reason."""


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (what, os.strerror(number)))


def mount(source: str, target: str, kind: Optional[str], flags: int, data: str = "") -> None:
    _check(libc.mount(source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags),
                      data.encode() or None), "mount %s" % target)


def unmount(target: str) -> None:
    _check(libc.umount2(target.encode(), DETACH), "umount %s" % target)


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def set_read_only(path: str, on: bool, recursive: bool) -> None:
    attributes = _Attributes(RDONLY if on else 0, 0 if on else RDONLY, 0, 0)
    _check(libc.syscall(SETATTR, AT_CWD, path.encode(), RECURSIVE if recursive else 0, ctypes.byref(attributes),
                        ctypes.c_size_t(ctypes.sizeof(attributes))), "mount_setattr %s" % path)


def mount_points() -> List[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        fields = [line.split(" ")[4] for line in lines]
    return [re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), each) for each in fields]


def inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def places(folder: str, words: Sequence[str], environment: Dict[str, str]) -> List[str]:
    """The folders that get an overlay: outer ones first. The working directory always has its own, since the owner of a
    folder above may not exist in a user namespace, and such a folder cannot be copied."""
    wanted = [folder, "/tmp", "/var/tmp", environment.get("TMPDIR", ""), os.path.expanduser("~")]
    for word in words:
        value = word.split("=", 1)[1] if word.startswith("-") and "=" in word else word
        path = value if os.path.isabs(value) else os.path.join(folder, value) if value.startswith("..") else ""
        while path and not os.path.isdir(path):
            path = os.path.dirname(path)
        wanted.append(path)
    real = sorted({os.path.realpath(each) for each in wanted if each and os.path.isdir(each)})
    system = ("/", "/usr", "/bin", "/etc", "/proc", "/sys", "/dev", "/lib", "/opt")
    kept: List[str] = []
    for each in real:
        if each == "/" or any(inside(each, part) for part in system[1:]):
            continue
        if each == os.path.realpath(folder) or not any(inside(each, outer) for outer in kept):
            kept.append(each)
    return kept


class PrivateCopy:
    """Enters the namespace in its constructor: from then on this process cannot change the user's files. Raises
    Refused."""

    def __init__(self, folder: str, words: Sequence[str], environment: Dict[str, str]) -> None:
        self.folder = os.path.realpath(folder)
        self.upper: Dict[str, str] = {}  # of each place: the folder with what the run has written
        self._places = places(self.folder, words, environment)
        if not any(inside(self.folder, each) for each in self._places):
            raise Refused("the working directory %s is one of the system's; start it from one of your own"
                          % self.folder)
        self._base = tempfile.mkdtemp(prefix="ddprun-rehearsal-")
        self._cleaner = self._outside()
        try:
            self._enter()
        except OSError as error:
            self.close()
            raise Refused("no private copy of %s can be made here (%s); it needs user namespaces or root, and "
                          "Linux 5.12" % (self.folder, error.strerror)) from None

    def _outside(self) -> Tuple[int, int]:
        """A process that stays outside and removes the empty folder at the end."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write)
            os.setsid()
            os.read(read, 1)
            try:
                os.rmdir(self._base)
            finally:
                os._exit(0)
        os.close(read)
        return child, write

    def close(self) -> None:
        child, write = self._cleaner
        os.close(write)
        os.waitpid(child, 0)

    def _enter(self) -> None:
        uid, gid = os.getuid(), os.getgid()
        self._user = libc.unshare(NEWNS) != 0
        if self._user:
            _check(libc.unshare(NEWNS | NEWUSER), "unshare")
            for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (uid, uid)),
                               ("gid_map", "%d %d 1" % (gid, gid))):
                with open("/proc/self/" + name, "w", encoding="ascii") as file:
                    file.write(text)
        mount("none", "/", None, REC | PRIVATE)
        set_read_only("/", True, True)
        for each in ("/proc", "/sys"):
            set_read_only(each, False, True)
        self._roots = {place: os.open(place, os.O_PATH) for place in self._places}
        self._below = {place: [(each, os.open(each, os.O_PATH)) for each in mount_points()
                               if inside(each, place) and each != place and os.path.isdir(each)]
                       for place in self._places}
        self._mounted: List[str] = []
        self.fresh()

    def fresh(self) -> None:
        """Forgets all that was written."""
        for each in reversed(self._mounted):
            unmount(each)
        self._mounted = []
        os.chdir("/")
        mount("tmpfs", self._base, "tmpfs", NOSUID | NODEV, "mode=755")
        self._memory = os.open(self._base, os.O_PATH | os.O_DIRECTORY)
        self._mounted.append(self._base)
        memory = "/proc/self/fd/%d" % self._memory
        if os.path.isdir("/dev/shm"):
            mount("tmpfs", "/dev/shm", "tmpfs", NOSUID | NODEV, "mode=1777")
            self._mounted.append("/dev/shm")
        for number, place in enumerate(self._places):
            upper, work = "%s/u%d" % (memory, number), "%s/w%d" % (memory, number)
            os.mkdir(upper)
            os.mkdir(work)
            shutil.copystat("/proc/self/fd/%d" % self._roots[place], upper)
            options = "lowerdir=/proc/self/fd/%d,upperdir=%s,workdir=%s" % (self._roots[place], upper, work)
            try:
                mount("overlay", place, "overlay", NOSUID | NODEV, options + (",userxattr" if self._user else ""))
            except OSError:
                if inside(self.folder, place):
                    raise
                continue  # it stays read-only
            self._mounted.append(place)
            self.upper[place] = upper
            for point, descriptor in self._below[place]:
                try:
                    mount("/proc/self/fd/%d" % descriptor, point, None, BIND | REC)
                    self._mounted.append(point)
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.EINVAL):
                        raise
        os.chdir(self.folder)

    def fill(self, full: bool) -> None:
        """Full: the copy cannot grow any more. Else it may again take half of the memory."""
        where = "/proc/self/fd/%d" % self._memory
        status = os.statvfs(where)
        used = (status.f_blocks - status.f_bfree) * status.f_frsize
        mount("tmpfs", where, None, REMOUNT | NOSUID | NODEV, "size=%s" % (used if full else "50%"))

    def changed(self) -> Dict[str, Tuple[int, int, int]]:
        """Files that the run has written: inode, size and time of change."""
        found = {}
        for place, upper in self.upper.items():
            for folder, folders, files in os.walk(upper):
                folders[:] = [each for each in folders if not each.startswith(".") and each != "__pycache__"]
                for name in files:
                    path = os.path.join(folder, name)
                    try:
                        status = os.lstat(path)
                    except OSError:
                        continue
                    if status.st_mode & 0o170000 == 0o100000:
                        found[place + path[len(upper):]] = (status.st_ino, status.st_size, status.st_mtime_ns)
        return found
