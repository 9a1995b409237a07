"""The server: imports once, and forks the workers of each generation.

It speaks with ddprun on a SOCK_SEQPACKET socket; warm/channel.h has both directions. The
workers are children of an intermediate process that ends at once, so ddprun's keeper, which is a
subreaper, becomes their parent. They wait for the keeper's word before they go on to the script.
"""
import atexit
import ctypes
import gc
import os
import sys
import time
import _signal
import _socket

from _ddprun_hidden import Hidden
from _ddprun_preload import Preload
from _ddprun_process import fork_quietly, place, read_oom, show_environment, write_all, write_oom
from _ddprun_record import read
from _ddprun_script import listed_imports_of, path_of

_MOST = 1 << 16  # bytes of a packet
_MOST_FDS = 32
_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_MADV_COLLAPSE = 25
_HUGE = 1 << 21
# What a shell says of a program that cannot be run.
_CANNOT_RUN = 126
# Those of faults and of the keeper stay.
_FOR_WORKERS = set(range(1, _signal.NSIG)) - {
    _signal.SIGKILL, _signal.SIGSTOP, _signal.SIGCHLD, _signal.SIGSEGV, _signal.SIGBUS, _signal.SIGFPE, _signal.SIGILL,
    _signal.SIGABRT, _signal.SIGTRAP, _signal.SIGSYS, 32, 33}
# So long a sleep for each second of work, while others wait for the CPUs.
_SHARE = 2


def serve(channel, start):
    """Returns in each worker: the file for the record of its imports, or "". `start`: what the process was before
    the bootstrap (sitecustomize.py)."""
    return _Server(channel, start).run()


def plan_of(texts):
    """What ddprun wants, from keys and values in turn."""
    plan = {"rank": [], "script": [], "module": [], "record": [], "leave": [], "read": [], "slowly": [], "sent": []}
    for key, value in zip(texts[::2], texts[1::2]):
        plan[key].append(value)
    return plan


def records_of(plan):
    """What the workers have imported; before the first generation, what the text of the script says."""
    found = [read(each) for each in plan["record"]]
    for script in plan["read"]:
        found.append([(name, None) for name in listed_imports_of(script)])
    return found


class _Packet:
    """Words, and descriptors. With a payload, its text is read from the first of them."""

    def __init__(self, words, fds):
        self.kind, self.words, self.fds = words[0], words[1:], fds

    def payload(self):
        file = self.fds.pop(0)
        pieces = []
        while True:
            piece = os.read(file, 1 << 20)
            if not piece:
                break
            pieces.append(piece)
        os.close(file)
        return [os.fsdecode(text) for text in b"".join(pieces).split(b"\0")[:-1]]


class _Worker:
    """What a worker gets of its own."""

    def __init__(self, packet):
        texts = packet.payload()
        self.imports, numbers, cpus = texts[0], texts[1].split(), texts[2].split()
        self.cpus = [int(each) for each in cpus]
        self.environment = texts[3:]
        self.release = packet.fds.pop(0)
        self.descriptors = dict(zip((int(each) for each in numbers), packet.fds))

    def close(self):
        for each in [self.release, *self.descriptors.values()]:
            os.close(each)


class _Server:
    def __init__(self, channel, start):
        self._start = start
        self._socket = _socket.socket(fileno=channel)
        self._keeper = os.getppid()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._preload = None
        self._sent, self._found = {}, {}  # the environment, from ddprun and at the interpreter
        self._workers = []
        self._path = []  # what Python puts before sys.path when the script begins
        self._oom = None  # what the workers' oom_score_adj is, if that of the server could be raised

    def run(self):
        self._oom = read_oom()
        # If memory runs out, the server goes, not the training. Its workers must be able to go back.
        if not write_oom("1000"):
            self._oom = None
        elif not (write_oom(self._oom) and write_oom("1000")):
            os._exit(1)
        self._say("hello")
        # Slurm sends a signal of scancel to all processes of a step, also to this one. What is imported and what is
        # forked finds the signals as they were.
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        while True:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _FOR_WORKERS)
            packet = self._receive()
            if packet is None:
                os._exit(0)
            if packet.kind == "import":
                while _signal.sigtimedwait(_FOR_WORKERS, 0):
                    pass
                _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
                self._import(packet)
            elif packet.kind == "worker":
                self._workers.append(_Worker(packet))
            elif packet.kind == "fork":
                workers, self._workers = self._workers, []
                mine = self._fork(packet.words[0], workers, mask)
                if mine is not None:
                    return mine.imports

    def _say(self, *words):
        self._socket.send("\0".join(words).encode("utf-8", "surrogateescape"))

    def _receive(self):
        data, extra, _, _ = self._socket.recvmsg(
            _MOST, _socket.CMSG_SPACE(4 * _MOST_FDS), _socket.MSG_CMSG_CLOEXEC)
        if not data:
            return None
        fds = []
        for level, kind, content in extra:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                fds += memoryview(content)[:len(content) // 4 * 4].cast("i").tolist()
        return _Packet([os.fsdecode(word) for word in data.split(b"\0")], fds)

    def _import(self, packet):
        plan = plan_of(packet.payload())
        records = records_of(plan)
        if self._preload is None:
            self._sent = dict(text.split("=", 1) for text in plan["sent"])
            self._found = dict(os.environ)
            self._path = path_of(plan)
            sys.path[:0] = self._path
            leave = [each.split("\t", 1) for each in plan["leave"]]
            self._preload = Preload(self._start, set(plan["rank"]), self._pace, leave)
        self._slowly = bool(plan["slowly"])
        self._ran = self._waited = None
        why = self._start.unfit or self._preload.add(records)
        if why and self._preload.failed:
            return self._say("again", self._preload.failed, why)
        if why:
            return self._say("cold", why)
        gc.collect()
        gc.freeze()
        if self._slowly:
            self._use_huge_pages()
        self._say("ready", str(sum(len(each.modules) for each in self._preload.groups)), self._preload.partly)

    # Workers that train need the CPUs more: while others wait for them, this process sleeps most of the time.
    def _pace(self):
        if not self._slowly:
            return
        with open("/proc/self/schedstat") as file:
            ran, waited, _ = map(int, file.read().split())
        if self._ran is not None and waited - self._waited > (ran - self._ran) / 4:
            time.sleep(min(_SHARE * (ran - self._ran) / 1e9, 0.2))
        self._ran, self._waited = ran, waited

    # A fork copies the tables of all private pages, and the end of a process takes them apart again.
    # With 400 MB of them a fork takes 9 ms, and in huge pages 3 (madvise(2); Linux 6.1, else nothing
    # happens). It takes a second, so nobody may be waiting.
    def _use_huge_pages(self):
        with open("/proc/self/maps") as maps:
            regions = [line.split() for line in maps]
        for span, rights, *rest in regions:
            if rights != "rw-p" or rest[3:] not in ([], ["[heap]"]):
                continue
            begin, end = (int(each, 16) for each in span.split("-"))
            begin, end = -(-begin // _HUGE) * _HUGE, end // _HUGE * _HUGE
            if begin < end:
                self._libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MADV_COLLAPSE)

    def _fork(self, number, workers, mask):
        reading, writing = os.pipe()
        try:
            middle = fork_quietly()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            self._end(number, workers, [], error.errno)
            return None
        if middle == 0:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
            return self._fork_all(reading, writing, workers)
        os.close(writing)
        # The files are looked at while the workers are forked. They do not go on yet.
        changed = self._preload.changed()
        answer = _read_line(reading).split()
        os.close(reading)
        # Only now the keeper is the parent of the workers.
        os.waitpid(middle, 0)
        if changed:
            self._say("stale", number, changed)
            return None
        if not answer:
            answer = ["4"]  # EINTR: the process in the middle was killed
        self._end(number, workers, answer[1:], int(answer[0]))
        return None

    def _end(self, number, workers, pids, error):
        for each in workers:
            each.close()
        if error:
            self._say("failed", number, str(error))
        else:
            self._say("forked", number, *pids)

    # In the process in the middle. Returns in each worker.
    def _fork_all(self, reading, writing, workers):
        os.close(reading)
        pids = []
        del sys.path[:len(self._path)]
        hidden = Hidden(self._preload, self._path)
        for worker in workers:
            try:
                pid = os.fork()
            except OSError as error:
                os.write(writing, b"%d\n" % error.errno)
                os._exit(0)
            if pid == 0:
                self._become(worker, hidden)
                return worker
            pids.append(pid)
        os.write(writing, " ".join(["0", *map(str, pids)]).encode() + b"\n")
        os._exit(0)

    # Everything that takes time comes before the keeper's word.
    def _become(self, worker, hidden):
        try:
            os.setsid()
            if self._oom is not None and not write_oom(self._oom):
                os._exit(_CANNOT_RUN)
            place(worker)
            if os.isatty(1) and hasattr(sys.stdout, "reconfigure"):
                sys.stdout.reconfigure(line_buffering=True)  # the server's is a pipe
            if worker.cpus:
                os.sched_setaffinity(0, worker.cpus)
            hidden.begin(self._set_environment(worker))
            self._new_identity(hidden.find)
            word = os.read(worker.release, 1)
            os.close(worker.release)
            if not word:
                os._exit(_CANNOT_RUN)
            self._libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(_SIGKILL), 0, 0, 0)
            # The keeper may have died before prctl(). Then no death signal will come.
            if os.getppid() != self._keeper:
                os._exit(_CANNOT_RUN)
            for number, text in enumerate(self._start.printed, 1):
                write_all(number, text)
        except BaseException as error:
            write_all(2, b"ddprun: cannot become a worker: %s\n" % str(error).encode())
            os._exit(_CANNOT_RUN)
        self._socket.detach()

    def _set_environment(self, worker):
        wanted = dict(text.split("=", 1) for text in worker.environment)
        if self._found != self._sent:
            # The interpreter is behind a script that sets variables. They are found, not sent.
            for name, value in self._found.items():
                if wanted.get(name) == self._sent.get(name):
                    wanted[name] = value
            for name in set(self._sent) - set(self._found):
                wanted.pop(name, None)
        show_environment(self._libc, [os.fsencode(name + "=" + value) for name, value in wanted.items()])
        os.environ.clear()
        for name, value in wanted.items():
            os.environ[name] = value
        return wanted

    # What each process has for itself, but a fork shares.
    @staticmethod
    def _new_identity(loaded):
        if loaded("numpy.random") is not None:
            loaded("numpy.random").seed()
        if loaded("torch") is not None:
            loaded("torch").default_generator.seed()
        process = loaded("multiprocessing.process")
        if process is not None:
            process.current_process().authkey = os.urandom(32)
        threading = loaded("threading")
        if threading is not None and hasattr(threading.main_thread(), "_set_native_id"):
            threading.main_thread()._set_native_id()
        logging = loaded("logging")
        if logging is not None:
            # Nanoseconds since 3.13.
            logging._startTime = time.time_ns() if logging._startTime > 1e15 else time.time()
        # Frozen objects at the end look like leaks to some libraries.
        atexit.register(gc.unfreeze)


def _read_line(file):
    text = b""
    while not text.endswith(b"\n"):
        piece = os.read(file, 1 << 16)
        if not piece:
            return ""
        text += piece
    return text.decode()
