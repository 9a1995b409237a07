"""Worker of shared_memory.sh. In generation 0 it leaves things in shared memory, in as many ways as there are, and dies
without a chance to remove them; in generation 1 it says which of them are still there.

What it leaves stands in the folder of the first argument: left.RANK, names of files and numbers of segments of System V.
The second says of what kind: `loader` (a PyTorch DataLoader's tensors), `python`."""
import ctypes
import glob
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

folder, kind = pathlib.Path(sys.argv[1]), sys.argv[2]
rank, mark = os.environ["RANK"], os.environ["DDPRUN_TEST_MARK"]
libc = ctypes.CDLL(None, use_errno=True)


def segments():
    return {line.split()[1] for line in open("/proc/sysvipc/shm").readlines()[1:]}


def sockets():  # of the libraries, which have made up their names
    made = [path for kind in ("torch-shm-dir-*", "pymp-*") for path in glob.glob(f"{tempfile.gettempdir()}/{kind}/*")]
    return made + [os.path.dirname(path) for path in made if "torch-shm-dir-" in path]


def leave_tensors():
    import torch
    import torch.multiprocessing
    from torch.utils.data import DataLoader

    torch.multiprocessing.set_sharing_strategy("file_system")
    loader = iter(DataLoader([torch.full((1000,), float(i)) for i in range(400)], batch_size=4, num_workers=2))
    held = [next(loader) for _ in range(3)]
    children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    # One of the two that load is dead already, as if for lack of memory: what it had sent is still on its way.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the loader's own handler would raise
    os.kill(int(children[0]), signal.SIGKILL)
    names = [name for child in children for name in glob.glob(f"/dev/shm/torch_{child}_*")]
    assert len(names) > len(held) and sockets()
    return names + sockets(), held


def leave_by_python():
    from multiprocessing import Manager, get_context, resource_tracker, shared_memory

    def wait_for_tracker():  # until it heeds what it is told
        path = f"/proc/{resource_tracker._resource_tracker._pid}/status"
        while "SigIgn:\t0000000000000000" in open(path).read():
            time.sleep(0.01)

    block = shared_memory.SharedMemory(create=True, size=4096)
    lock = get_context("spawn").Lock()
    manager = Manager()
    assert sockets()
    wait_for_tracker()
    with open(f"/dev/shm/cache-{mark}-{rank}", "w"):  # a name of its own: not ours
        pass
    # As NCCL has it until its peers have it too.
    nccl = os.open(f"/dev/shm/nccl-{rank}{os.getpid() % 100000:05d}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    segment = libc.shmget(0, 4096, 0o1600)
    libc.shmat.restype = ctypes.c_void_p
    assert segment >= 0 and libc.shmat(segment, None, 0)
    keyed = libc.shmget(0x10000000 + os.getpid(), 4096, 0o1600)
    (folder / f"keyed.{rank}").write_text(f"{keyed}\n")
    names = [f"/dev/shm/{block.name.lstrip('/')}", "/dev/shm/sem." + lock._semlock.name.lstrip("/"),
             os.readlink(f"/proc/self/fd/{nccl}"), f"segment {segment}"]
    return names + sockets(), (block, lock, manager)


def is_there(name):
    return name.split()[1] in segments() if name.startswith("segment") else os.path.exists(name)


def stays(name):  # sockets go with the job
    return name.startswith(("/dev/shm/", "segment")) and is_there(name)


if __name__ == "__main__":
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        names, held = {"loader": leave_tensors, "python": leave_by_python}[kind]()
        (folder / f"part.{rank}").write_text("\n".join(names))
        os.rename(folder / f"part.{rank}", folder / f"left.{rank}")
        while len(list(folder.glob("left.*"))) < 2:
            time.sleep(0.01)
        if rank == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            time.sleep(1)
    still = [name for name in (folder / f"left.{rank}").read_text().split("\n") if stays(name)]
    if still:
        print("still there:", *still, flush=True)
        sys.exit(5)
