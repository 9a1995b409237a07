"""What a process says to the kernel about itself: its descriptors, its forks, its end, and how soon it goes when memory
runs out."""
import ctypes
import fcntl
import os
import struct
import sys

_SIGKILL = 9


def read_oom():
    with open("/proc/self/oom_score_adj") as file:
        return file.read().strip()


def write_oom(value):
    try:
        file = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(file, value.encode())
    except OSError:
        return False
    finally:
        os.close(file)
    return True


_PR_SET_MM, _PR_SET_MM_MAP = 35, 14


# Nothing is overwritten: libraries may have kept pointers to variables of the server. The kernel is
# told another place instead (prctl(2), PR_SET_MM_MAP; needs no rights). Where it does not know this,
# the file shows the server's.
def show_environment(libc, environment):
    """Makes /proc/PID/environ that of the worker."""
    text = b"".join(each + b"\0" for each in environment)
    libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
    memory = libc.malloc(ctypes.c_size_t(len(text)))  # for as long as the process lives
    if not memory:
        return
    ctypes.memmove(memory, text, len(text))
    with open("/proc/self/stat", "rb") as file:
        # proc(5) counts from 1; the third is the first behind the name.
        fields = [0, 0, 0, *file.read().rpartition(b")")[2].split()]
    code, stack, data, argv = fields[26:28], fields[28], fields[45:48], fields[48:50]
    numbers = [*code, *data, libc.sbrk(0), stack, *argv, memory, memory + len(text)]
    # struct prctl_mm_map; no new auxiliary vector, no new executable.
    wanted = struct.pack("=12QIi", *map(int, numbers), 0, 0, -1)
    libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP, wanted, ctypes.c_ulong(len(wanted)), ctypes.c_ulong(0))


def place(worker):
    """Gives the descriptors their numbers, and closes all others."""
    above = max([2, *worker.descriptors]) + 1
    moved = {}
    for number in sorted({0, 1, 2, *worker.descriptors}):
        source = worker.descriptors.get(number)
        if source is None:
            source = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        moved[number] = fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, above)
    release = fcntl.fcntl(worker.release, fcntl.F_DUPFD_CLOEXEC, above)
    for number, source in moved.items():
        os.dup2(source, number)
    worker.release = release
    keep = {*moved, release}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in keep:
            try:
                os.close(int(name))
            except OSError:
                pass  # the one of listdir()


def write_all(file, text):
    while text:
        try:
            text = text[os.write(file, text):]
        except OSError:
            return


def fork_quietly():
    """Python 3.12 warns of a fork while there are threads. There are none of ours."""
    warnings = sys.modules.get("warnings")
    if warnings is None or sys.version_info < (3, 12):
        return os.fork()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def end_for_difference(why, error_file, worker):
    """Ends this process, and the worker `worker` if it is a fork of that. ddprun reads why in the error file."""
    text = "".join(each if each.isprintable() and each not in '"\\\x7f' else "?" for each in why)
    try:
        file = os.open(error_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        write_all(file, b'{"message": "ddprun warm start: %s"}' % text.encode("utf-8", "replace"))
        os.close(file)
    finally:
        if os.getpid() != worker:
            os.kill(worker, _SIGKILL)
        os._exit(1)
