"""A training without PyTorch, on two ranks in lockstep: everything that a snapshot needs is in a few lines. Sound as it
is; the first argument may name a bug."""
import multiprocessing.connection as connection
import os
import pickle
import random
import signal
import socket
import sys
import time

bug, last = (sys.argv + ["none"])[1], 40
rank = int(os.environ["RANK"])
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
meeting = "%s/%s-%s" % (os.environ.get("TMPDIR", "/tmp"), os.environ["TORCHELASTIC_RUN_ID"], attempt)
stop = []
signal.signal(signal.SIGTERM, lambda *_: bug == "stop_ignored" or stop.append(1))


class DistributedSampler:
    """The order of the samples of a rank in an epoch."""

    def __init__(self):
        self.position = 0

    def set_epoch(self, epoch):
        self.order = list(range(12))
        random.Random(100 * rank + epoch).shuffle(self.order)

    def sample(self):
        self.set_epoch(self.position // 12)
        self.position += 1
        return self.order[(self.position - 1) % 12] / 12


def meet():
    """A connection between the two ranks."""
    if bug == "port" and rank == 0:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 29871))
        listener.listen()
    if rank == 0:
        own = connection.Listener(meeting, "AF_UNIX")
        peer = own.accept()
        if bug == "port":  # its end closes first, so the address stays in use for a minute
            other, _ = listener.accept()
            other.close()
        return peer
    while True:
        try:
            peer = connection.Client(meeting, "AF_UNIX")
            if bug == "port":
                socket.create_connection(("127.0.0.1", 29871)).recv(1)
            return peer
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.01)


def write(path, data, in_place=False):
    part = path if in_place else "%s.part%d" % (path, rank)
    with open(part, "wb") as file:
        file.write(data)
    if not in_place:
        os.replace(part, path)


def save(step, states):
    data = pickle.dumps({"step": step, "ranks": states})
    if bug == "in_place":
        return write("snapshot.pkl", data, in_place=True)
    if bug == "one_file":
        return write("snapshot.pkl", data)
    write("step-%d.pkl" % step, data)
    if bug != "stale_latest" or not os.path.exists("latest"):
        write("latest", b"step-%d.pkl" % step)


def newest():
    if os.path.exists("snapshot.pkl"):
        return "snapshot.pkl"
    return open("latest", encoding="ascii").read() if os.path.exists("latest") else ""


noise, sampler = random.Random(rank), DistributedSampler()
step, weight, momentum, decays, scale = 0, 1.0, 0.0, 0, 1.0
if newest() and bug != "not_loaded":
    with open(newest(), "rb") as file:
        snapshot = pickle.load(file)
    mine = snapshot["ranks"][0 if bug == "wrong_rank" else rank]
    step = 0 if bug == "counter" else snapshot["step"]
    weight = mine["model"]
    momentum = mine.get("optimizer", {}).get("momentum_buffer", 0.0)
    decays = mine.get("scheduler", {}).get("last_epoch", 0)
    scale = mine.get("scaler", {}).get("scale", 1.0)
    sampler.position = mine.get("sampler", 0)
    if "rng" in mine:
        noise.setstate(mine["rng"])
peer = meet()
progress = os.fdopen(int(os.environ["DDPRUN_PROGRESS_FD"]), "w", 1)
while step < last:
    step += 1
    rate = 0.2 * 0.97 ** decays
    error = weight - sampler.sample() + 0.1 * noise.random()
    momentum = 0.9 * momentum + round(error * scale) / scale
    weight -= rate * momentum / 10
    decays, scale = decays + 1, scale * (2 if step % 4 == 0 and scale < 1e6 else 1)
    print("step %d loss %.6f lr=%.6f" % (step, error * error, rate), flush=True)
    state = {"model": weight, "optimizer": {"momentum_buffer": momentum}, "scheduler": {"last_epoch": decays},
             "scaler": {"scale": scale}, "rng": noise.getstate(), "sampler": sampler.position}
    for lost in {"random": ["rng"]}.get(bug, [bug]):
        state.pop(lost, None)
    asked = bool(stop)
    peer.send((state, asked))
    other, other_asked = peer.recv()
    stops = asked or other_asked  # both ranks know the same
    if (rank == 0 or bug == "one_file") and (step % 5 == 0 or stops):
        save(step, [state, other] if rank == 0 else [other, state])
    print("step=%d" % step, file=progress)
    time.sleep(0.04)
    if stops:
        break
