"""What a process says to the kernel about itself: its descriptors, and how soon it goes when memory runs out."""
import fcntl
import os


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
