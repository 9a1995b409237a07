"""Pauses of one rank that end after SECONDS_OF_PAUSE: none of them is a hang."""
import gc
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import torch

seconds = float(os.environ.get("SECONDS_OF_PAUSE", 25))


def until_the_end():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


# ---- it computes

def evaluates():
    for _ in until_the_end():
        sum(range(10000))


def evaluates_with_torch():
    model = torch.nn.Sequential(*(torch.nn.Linear(300, 300) for _ in range(8)))
    with torch.no_grad():
        for _ in until_the_end():
            model(torch.ones(300, 300))


def has_much_garbage():
    kept = [[i] for i in range(500000)]
    for _ in until_the_end():
        gc.collect()
    kept.clear()


def is_nice():
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    os.nice(19)
    evaluates()
    for each in burners:
        each.kill()
        each.wait()


def one_long_call():
    x = torch.ones(900, 900)
    for _ in until_the_end():
        x = torch.linalg.svd(x)[0]


# ---- it reads and writes

def saves():
    with tempfile.TemporaryFile() as file:
        for _ in until_the_end():
            file.seek(0)
            file.write(b"x" * (8 << 20))


def saves_and_syncs():
    with tempfile.TemporaryFile() as file:
        for _ in until_the_end():
            file.seek(0)
            torch.save(torch.ones(1 << 20), file)
            os.fsync(file.fileno())


def pages():
    with tempfile.TemporaryFile() as file:
        file.truncate(64 << 20)
        area = mmap.mmap(file.fileno(), 64 << 20)
        for _ in until_the_end():
            for at in range(0, len(area), 1 << 16):
                area[at]
            area.madvise(mmap.MADV_DONTNEED)
            time.sleep(0.05)
        area.close()


def downloads():
    ours, theirs = socket.socketpair()

    def server():
        for _ in until_the_end():
            theirs.send(b"x" * 1000)
            time.sleep(1)
        theirs.close()

    threading.Thread(target=server).start()
    while ours.recv(1000):
        pass


# ---- others work for it

def saves_in_child():
    subprocess.run(["timeout", str(seconds), "sh", "-c", "while :; do head -c 1000000 /dev/zero > /dev/null; done"])


def compiles():
    # What a compiler does: many short processes.
    for _ in until_the_end():
        subprocess.run([sys.executable, "-S", "-c", "pass"], check=True)


def slow_loader():
    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, i):
            time.sleep(seconds)
            return i

    for _ in torch.utils.data.DataLoader(Slow(), num_workers=1):
        pass


def saves_in_thread():
    thread = threading.Thread(target=saves)
    thread.start()
    thread.join()


def is_locked_out():
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(seconds, lock.release).start()
    with lock:
        pass


# ---- nothing moves

# Until END_OF_PAUSE is there, if that is the name of a file.
def pauses():
    end = os.environ.get("END_OF_PAUSE")
    while end and not os.path.exists(end):
        time.sleep(0.1)
    if not end:
        time.sleep(seconds)


def is_debugged():
    if os.fork() == 0:
        time.sleep(seconds)
        os.kill(os.getppid(), signal.SIGCONT)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGSTOP)


def looks_for_late_file():
    path = tempfile.mktemp(prefix="plant-")
    threading.Timer(seconds, lambda: open(path, "w").close()).start()
    while not os.path.exists(path):
        time.sleep(0.1)
    os.unlink(path)


def reads_from_child():
    subprocess.run(["sleep", str(seconds)], capture_output=True)


def holds_gil():
    import ctypes
    ctypes.PyDLL(None).sleep(int(seconds))
