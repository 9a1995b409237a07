"""The network of examples/torch/mnist.cc in Python: the same digits, first weights, order of samples, and numbers.

    ddprun --standalone --nproc-per-node=2 --max-restarts=3 mnist.py --snapshot /tmp/mnist.pt

Runs under torchrun and ddprun. The options are those of build/bin/mnist; --snapshot is a file of torch.save(). --save
and --evaluate are safetensors files with the names of state_dict(), as in C++."""
import argparse, json, math, os, pathlib, signal, sys, time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, max_pool2d, relu
from torch.nn.parallel import DistributedDataParallel

SIDE = 28
TYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64}
FONT = torch.tensor([  # seven rows of five dots for each digit; the highest of the five bits is on the left
    [14, 17, 17, 17, 17, 17, 14], [4, 12, 4, 4, 4, 4, 14], [14, 17, 1, 6, 8, 16, 31], [14, 17, 1, 6, 1, 17, 14],
    [2, 6, 10, 18, 31, 2, 2], [31, 16, 30, 1, 1, 17, 14], [6, 8, 16, 30, 17, 17, 14], [31, 1, 2, 4, 8, 8, 8],
    [14, 17, 17, 14, 17, 17, 14], [14, 17, 17, 15, 1, 2, 12]])


def at_least(least, kind):
    """The type of an option that is a number."""
    def read(text):
        if not kind(text) >= least:
            raise argparse.ArgumentTypeError(f"{text} is not {least} or more")
        return kind(text)
    read.__name__ = kind.__name__  # for argparse's own messages
    return read


def arguments():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value, least in (("samples", 8192, 1), ("epochs", -1, 0), ("steps", -1, 0), ("batch", 32, 1),
                               ("reference-batch", 32, 0), ("seed", 1, 0), ("snapshot-every", 20, 1),
                               ("log-every", 10, 1), ("crash-at-step", -1, 0), ("crash-rank", 0, 0)):
        options.add_argument("--" + name, type=at_least(least, int), default=value)
    for name, value in (("lr", 0.02), ("warm-up", 0.5), ("momentum", 0.9)):
        options.add_argument("--" + name, type=at_least(0, float), default=value)
    for name in ("data", "save", "evaluate", "snapshot"):
        options.add_argument("--" + name)
    options = options.parse_args()
    if options.epochs < 0 and options.steps < 0:
        options.epochs = 3
    folder = os.path.dirname(os.path.abspath(options.save or "file"))
    if os.environ.get("RANK") == "0" and options.save and not os.access(folder, os.W_OK):
        wrong(f"--save {options.save} cannot be written; name a file in a folder where you may write")
    return options


def mix(seed, places):
    """examples/random.h: a well mixed number of 64 bits for each place, as PyTorch's integers have them."""
    signed = lambda value: (value + 2**63) % 2**64 - 2**63
    z = places * signed(0x9E3779B97F4A7C15) + signed(seed * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> shift & (1 << 64 - shift) - 1)) * signed(factor)
    return z ^ (z >> 31 & (1 << 33) - 1)


def made_digits(count, seed):
    """examples/torch/digits.cc: the same bytes."""
    random = mix(seed, torch.arange(count))
    # The remainder of an unsigned number: its upper half counts 2^32 times.
    label = ((random >> 32 & 0xFFFFFFFF) % 10 * (2**32 % 10) + (random & 0xFFFFFFFF) % 10) % 10
    left, top, slant = (random >> 8 & 255) % 12, (random >> 16 & 255) % 8, (random >> 24 & 255) % 5 - 2
    ink = 160 + (random >> 32 & 255) % 96
    noise = mix(seed + 1, torch.arange(count * SIDE * SIDE)).view(count, SIDE, SIDE)
    y, x = torch.arange(SIDE).view(1, SIDE, 1), torch.arange(SIDE).view(1, 1, SIDE)
    row = y - top.view(-1, 1, 1)
    column = x - left.view(-1, 1, 1) - ((row * slant.view(-1, 1, 1) + 42) // 21 - 2)
    inside = (row >= 0) & (row < 21) & (column >= 0) & (column < 15)
    dots = FONT[label.view(-1, 1, 1), (row.clamp(0, 20) // 3)] >> (4 - column.clamp(0, 14) // 3) & 1
    inked = inside & (dots == 1) & ((noise >> 8 & 7) != 0)
    return torch.where(inked, ink.view(-1, 1, 1), noise & 63).to(torch.uint8), label


def wrong(sentence):
    print(f"mnist.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def path_of(folder, stem, kind):
    """The file under the first of its names that is there: of MNIST's page, with a dot, or in torchvision's folder."""
    paths = [pathlib.Path(folder, inside, stem + mark + kind) for inside in ("", "MNIST/raw") for mark in "-."]
    return next((path for path in paths if path.is_file() or path.with_name(path.name + ".gz").is_file()), paths[0])


def load_digits(folder, prefix):
    """MNIST's IDX files: a number for the type, one for each dimension, highest byte first, and the bytes."""
    tensors = []
    for stem, kind, sizes in (("-images", "idx3-ubyte", [SIDE, SIDE]), ("-labels", "idx1-ubyte", [])):
        path, dimensions = path_of(folder, prefix + stem, kind), len(sizes) + 1
        try:
            data = path.read_bytes()
        except OSError as problem:
            wrong(f"{path} cannot be read ({problem.strerror}); MNIST's files have to be unpacked (gunzip)")
        shape = [int.from_bytes(data[4 * i + 4:4 * i + 8], "big") for i in range(dimensions)]
        if (int.from_bytes(data[:4], "big") != 0x800 + dimensions or shape[1:] != sizes or
                len(data) != 4 + 4 * dimensions + math.prod(shape) or not shape[0]):
            wrong(f"{path} is no IDX file of bytes with the sizes N, 28, 28 or N, or was cut short; copy it again")
        tensors.append(torch.frombuffer(bytearray(data[4 + 4 * dimensions:]), dtype=torch.uint8).view(shape))
    images, labels = tensors
    if len(images) != len(labels) or labels.max() > 9:
        wrong(f"{folder}/{prefix}-*: {len(images)} images, {len(labels)} labels up to {labels.max()}; copy them again")
    return images, labels.long()


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm, self.conv2 = nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 16, 3)
        self.fc1, self.fc2 = nn.Linear(16 * 5 * 5, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = max_pool2d(relu(self.norm(self.conv1(x))), 2)
        x = max_pool2d(relu(self.conv2(x)), 2)
        return self.fc2(relu(self.fc1(x.flatten(1))))


def load_file(path, model):
    """A safetensors file: length, header in JSON, data."""
    try:
        data = pathlib.Path(path).read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        header, values = json.loads(data[8:begin]), bytearray(data[begin:])
        state = {}
        for name, entry in header.items():
            if name == "__metadata__" or name.startswith("optimizer."):
                continue
            first, last = entry["data_offsets"]
            state[name] = torch.frombuffer(values[first:last], dtype=TYPES[entry["dtype"]]).view(entry["shape"])
        model.load_state_dict(state)
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as problem:  # no file, or another model
        wrong(f"the network {path} cannot be loaded: {str(problem).splitlines()[0]}")


def finite(value, name, step):
    """All ranks have the same value, so all of them end here."""
    if not math.isfinite(value):
        sys.exit(f"mnist.py: the {name} at step {step} is not a finite number; try a lower --lr")
    return value


def save_file(path, model):
    names = {kind: name for name, kind in TYPES.items()}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, value in sorted(model.state_dict().items(), key=lambda item: -item[1].element_size()):  # aligned
        own = value.cpu().contiguous().numpy().tobytes()
        header[name] = {"dtype": names[value.dtype], "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + len(own)]}
        data += own
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + data)


class Training:
    def __init__(self, options):
        self.options, self.rank, self.world = options, dist.get_rank(), dist.get_world_size()
        cuda = torch.cuda.is_available()
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
        self.images, self.labels = self.digits("train", options.samples, 10)
        self.test = self.digits("t10k", 2048, 20)
        torch.manual_seed(options.seed)
        self.model = Network().to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=options.momentum)
        self.step, self.epoch, self.consumed, self.saved = 0, 0, 0, -1
        if options.snapshot and os.path.exists(options.snapshot):
            snapshot = torch.load(options.snapshot, map_location=self.device)
            self.model.load_state_dict(snapshot["model"])
            self.optimizer.load_state_dict(snapshot["optimizer"])
            self.step, self.epoch, self.consumed = snapshot["position"]
            self.saved = self.step
            if self.rank == 0:
                print(f"resumed from {options.snapshot} at step {self.step}", flush=True)
        self.parallel = DistributedDataParallel(self.model, gradient_as_bucket_view=True)

    def digits(self, prefix, count, seed):
        return load_digits(self.options.data, prefix) if self.options.data else made_digits(count, seed)

    def save(self):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                 "position": (self.step, self.epoch, self.consumed)}
        torch.save(state, self.options.snapshot + ".part")
        os.replace(self.options.snapshot + ".part", self.options.snapshot)
        self.saved = self.step

    def batch(self, images, labels, which):
        images = images[which].to(self.device).float()
        return (((images / 255 - 0.1307) / 0.3081).unsqueeze(1), labels[which].to(self.device))

    def deal(self):
        """This rank's samples of a step, as mnist.cc and DistributedSampler deal them."""
        count = len(self.labels)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(self.options.seed + self.epoch))
        rows = min(self.options.batch, -(-(count - self.consumed) // self.world))
        places = torch.arange(self.consumed + self.rank, self.consumed + rows * self.world, self.world)
        self.consumed = min(self.consumed + rows * self.world, count)
        return order[places % count]

    def rate(self):
        """Linear scaling with the global batch; a warm-up that begins at the rate of the reference batch."""
        o = self.options
        scaled = o.lr * o.batch * self.world / o.reference_batch if o.reference_batch else o.lr
        at = self.epoch + self.consumed / len(self.labels)
        if at >= o.warm_up:
            return scaled
        first = min(o.lr, scaled) if o.reference_batch else 0.0
        return first + (scaled - first) * at / o.warm_up

    def take_step(self):
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        images, labels = self.batch(self.images, self.labels, self.deal())
        self.optimizer.zero_grad()
        loss = cross_entropy(self.parallel(images), labels)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.item() * len(labels), len(labels)

    @torch.no_grad()
    def score(self):
        """Loss and share of right answers over all test images; each rank takes every world-th."""
        sums = torch.zeros(3, dtype=torch.float64)
        for buffer in self.model.buffers():  # all ranks look with the running means of rank 0
            dist.broadcast(buffer, 0)
        self.model.eval()
        own = torch.arange(self.rank, len(self.test[1]), self.world)
        for which in own.split(256):
            images, labels = self.batch(*self.test, which)
            answers = self.model(images)
            sums += torch.tensor([cross_entropy(answers, labels).item() * len(which),
                                  (answers.argmax(1) == labels).sum().item(), len(which)], dtype=torch.float64)
        self.model.train()
        self.summed = sums = sums.to(self.device)
        dist.all_reduce(sums)
        return finite((sums[0] / sums[2]).item(), "validation", self.step), (sums[1] / sums[2]).item()

    def run(self):
        o, sums, begun = self.options, torch.zeros(2, dtype=torch.float64), time.monotonic()
        told = os.environ.get("DDPRUN_PROGRESS_FD")
        progress = os.fdopen(int(told), "w", 1) if told else None
        stop_file, snapshot_file = os.environ.get("DDPRUN_STOP_FILE", ""), os.environ.get("DDPRUN_SNAPSHOT_FILE", "")
        asked = self.asked = torch.zeros(2, device=self.device)  # whether any rank is to stop, or to write a snapshot
        while not asked[0]:
            if self.consumed == len(self.labels):
                self.epoch, self.consumed = self.epoch + 1, 0
            if self.step == o.steps or self.epoch == o.epochs:
                return False
            crashes = self.rank == o.crash_rank and self.step == o.crash_at_step
            if crashes and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
                os.kill(os.getpid(), signal.SIGKILL)
            sums += torch.tensor(self.take_step(), dtype=torch.float64)
            if self.step % o.log_every == 0 or self.step == o.steps:
                self.summed = sums = sums.to(self.device)
                dist.all_reduce(sums)
                loss = finite((sums[0] / sums[1]).item(), "loss", self.step)
                if self.rank == 0:
                    speed = sums[1].item() / (time.monotonic() - begun)
                    print(f"step={self.step} loss={loss:.9f} samples/s={speed:.0f}", flush=True)
                sums, begun = torch.zeros(2, dtype=torch.float64), time.monotonic()
            if self.consumed == len(self.labels):
                paused = time.monotonic()
                loss, _ = self.score()
                if self.rank == 0:
                    print(f"epoch={self.epoch} step={self.step} validation={loss:.6g}", flush=True)
                begun += time.monotonic() - paused
            asked[0], asked[1] = os.path.exists(stop_file), os.path.exists(snapshot_file)
            dist.all_reduce(asked, dist.ReduceOp.MAX)  # all stop after the same step
            if asked[1] and os.environ["LOCAL_RANK"] == "0" and os.path.exists(snapshot_file):
                os.remove(snapshot_file)  # it is being written
            if o.snapshot and self.rank == 0 and (self.step % o.snapshot_every == 0 or asked.any()):
                self.save()
            if progress:
                print(f"step={self.step} snapshot={self.saved}", file=progress)
        return True


def main():
    options = arguments()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if "DDPRUN_STOP_FILE" in os.environ:  # a stop comes as this file, too, and the worker ends after a last snapshot
        signal.signal(signal.SIGTERM, lambda *_: None)
    training = Training(options)
    if options.evaluate:
        load_file(options.evaluate, training.model)
    stopped = False if options.evaluate else training.run()
    if not stopped:
        loss, right = training.score()
        if training.rank == 0:
            if options.save:
                save_file(options.save, training.model)
            print(f"validation={loss:.9g} accuracy={right:.4f}", flush=True)
    dist.barrier()  # no rank destroys the group while another still uses it
    # `training` still has the tensors that were reduced last: else PyTorch 1.13 can deadlock here (cnn.py says why).
    dist.destroy_process_group()
    sys.exit(128 + signal.SIGTERM if stopped else 0)


if __name__ == "__main__":
    main()
