"""The GPT-2 of examples/gpt in PyTorch: the same first weights, the same order of the data, the same numbers.

    ddprun --standalone --nproc-per-node=2 --max-restarts=3 gpt.py --steps 200 --snapshot /tmp/gpt.pt

Runs under torchrun and ddprun. The options are those of build/bin/gpt --help; --snapshot is a torch.save() file.
--save, --init and --evaluate are safetensors files with the names of transformers' GPT2LMHeadModel, as in C++."""
import argparse, contextlib, math, os, pathlib, signal, sys, time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from gpt_model import Gpt, first_weights, read_model, uniform, write_model

LICENSES = pathlib.Path("/usr/share/common-licenses")
SIZES = {"character": (4, 6, 192, 128, 0), "gpt2": (12, 12, 768, 1024, 50257)}


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
    options.add_argument("--size", choices=SIZES, default="character")
    for name in ("layers", "heads", "width", "context", "vocabulary"):
        options.add_argument("--" + name, type=at_least(1, int), default=0)
    for name, value, least in (("steps", 200, 0), ("batch", 8, 1), ("accumulate", 1, 1), ("warm-up", 20, 0),
                               ("seed", 1, 0), ("sample", 200, 0), ("snapshot-every", 20, 1), ("log-every", 10, 1),
                               ("validate-every", 0, 0), ("crash-at-step", -1, 0), ("crash-rank", 0, 0),
                               ("bucket-kib", 25600, 1)):
        options.add_argument("--" + name, type=at_least(least, int), default=value)
    for name, value in (("lr", 2e-3), ("final-lr", 2e-4), ("decay", 0.1), ("clip", 1.0)):
        options.add_argument("--" + name, type=at_least(0, float), default=value)
    for name in ("text", "init", "save", "evaluate", "snapshot"):
        options.add_argument("--" + name)
    options.add_argument("--compile", action="store_true", help="torch.compile")
    options = options.parse_args()
    layers, heads, width, context, vocabulary = SIZES[options.size]
    options.layers, options.heads = options.layers or layers, options.heads or heads
    options.width, options.context = options.width or width, options.context or context
    options.vocabulary = options.vocabulary or vocabulary
    folder = os.path.dirname(os.path.abspath(options.save or "file"))
    if os.environ.get("RANK") == "0" and options.save and not os.access(folder, os.W_OK):
        wrong(f"--save {options.save} cannot be written; name a file in a folder where you may write")
    return options


def wrong(sentence):
    print(f"gpt.py: {sentence}", file=sys.stderr)
    sys.exit(2)


class Text:
    """Windows of `context` characters and the one after them; each tenth is for validation."""

    def __init__(self, text, vocabulary, context):
        if len(text) <= 10 * context:
            wrong(f"the text has {len(text)} characters, but --context {context} needs at least {10 * context + 1}")
        if set(text) - set(vocabulary):
            wrong("the text has characters that the model does not know")
        places = bytes.maketrans(vocabulary, bytes(range(len(vocabulary))))
        self.tokens = torch.frombuffer(bytearray(text.translate(places)), dtype=torch.uint8)
        self.context, windows = context, (len(text) - 1) // context
        self.validation = [i for i in range(windows) if i % 10 == 9]
        self.training = [i for i in range(windows) if i % 10 != 9]

    def batch(self, windows, device):
        at = torch.tensor(windows)[:, None] * self.context + torch.arange(self.context + 1)
        tokens = self.tokens[at].to(device).long()
        return tokens[:, :-1], tokens[:, 1:]


def make_model(options):
    """The model, its text, and the metadata that its file has."""
    files = [pathlib.Path(options.text)] if options.text else sorted(
        file for file in LICENSES.glob("*") if file.is_file() and not file.is_symlink())
    try:
        text = b"".join(file.read_bytes() for file in files)
    except OSError as problem:
        wrong(f"cannot read the text: {problem}")
    vocabulary, tensors = bytes(sorted(set(text))), None
    if options.evaluate or options.init:
        path = options.evaluate or options.init
        try:
            tensors, metadata = read_model(path)
            vocabulary = bytes.fromhex(metadata["vocabulary"]) if "vocabulary" in metadata else vocabulary
            options.vocabulary, options.width = tensors["transformer.wte.weight"].shape
            options.context = tensors["transformer.wpe.weight"].shape[0]
            options.layers = sum(name.endswith("ln_1.weight") for name in tensors)
            options.heads = int(metadata.get("heads", options.width // 64))
        except (OSError, KeyError, TypeError, ValueError, RuntimeError) as problem:  # no file, no safetensors, no GPT-2
            wrong(f"the model {path} cannot be loaded: {str(problem).splitlines()[0]}")
    rows = options.vocabulary or len(vocabulary)
    if options.width % options.heads:
        wrong(f"--width {options.width} is not a multiple of --heads {options.heads}")
    if rows < len(vocabulary):
        wrong(f"the text has {len(vocabulary)} characters, but the vocabulary only {rows}; raise --vocabulary")
    model = Gpt(rows, options.context, options.layers, options.heads, options.width)
    if tensors:
        model.load_state_dict(tensors)
    else:
        first_weights(model, options.seed, options.layers)
    return model, Text(text, vocabulary, options.context), {"heads": str(options.heads), "vocabulary": vocabulary.hex()}


class Training:
    def __init__(self, options):
        self.options, self.rank, self.world = options, dist.get_rank(), dist.get_world_size()
        cuda = torch.cuda.is_available()
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
        self.bf16 = torch.autocast("cuda", torch.bfloat16) if cuda else contextlib.nullcontext()
        model, self.text, self.metadata = make_model(options)
        self.model = model.to(self.device)
        matrices = [p for p in model.parameters() if p.dim() > 1]
        others = [p for p in model.parameters() if p.dim() == 1]
        version = tuple(int(part) for part in torch.__version__.split(".")[:2])
        fused = {"fused": True} if version >= (2, 4) else {}  # faster; from 2.4 on also on CPUs
        groups = [{"params": matrices, "weight_decay": options.decay}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8, **fused)
        self.step, self.epoch, self.consumed, self.saved = 0, 0, 0, -1
        if options.snapshot and os.path.exists(options.snapshot):
            self.resume()
        self.parallel = DistributedDataParallel(self.model, gradient_as_bucket_view=True,
                                                bucket_cap_mb=max(1, options.bucket_kib >> 10))
        if options.compile:
            self.parallel = torch.compile(self.parallel)

    def resume(self):
        snapshot = torch.load(self.options.snapshot, map_location=self.device)
        self.model.load_state_dict(snapshot["model"])
        self.optimizer.load_state_dict(snapshot["optimizer"])
        self.step, self.epoch, self.consumed = snapshot["position"]
        self.saved = self.step
        if self.rank == 0:
            print(f"resumed from {self.options.snapshot} at step {self.step}", flush=True)

    def save(self):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                 "position": (self.step, self.epoch, self.consumed)}
        torch.save(state, self.options.snapshot + ".part")
        os.replace(self.options.snapshot + ".part", self.options.snapshot)
        self.saved = self.step

    def deal(self):
        """This rank's windows of a step, in batches: examples/gpt and DistributedSampler deal in the same way."""
        count, batches = len(self.text.training), []
        if self.consumed == count:
            self.epoch, self.consumed = self.epoch + 1, 0
        order = torch.randperm(count, generator=torch.Generator().manual_seed(self.options.seed + self.epoch)).tolist()
        while self.consumed < count and len(batches) < self.options.accumulate:
            rows = min(self.options.batch, -(-(count - self.consumed) // self.world))
            first = self.consumed + self.rank
            places = range(first, first + rows * self.world, self.world)
            batches.append([self.text.training[order[i % count]] for i in places])
            self.consumed = min(self.consumed + rows * self.world, count)
        return batches

    def rate(self):
        o = self.options
        if self.step < o.warm_up:
            return o.lr * self.step / o.warm_up
        done = min((self.step - o.warm_up) / max(o.steps - o.warm_up, 1), 1)
        return o.final_lr + (o.lr - o.final_lr) * (1 + math.cos(math.pi * done)) / 2

    def take_step(self):
        """Returns the sum of the losses of this rank's windows, and their number."""
        batches, total = self.deal(), 0.0
        rows = sum(map(len, batches))
        self.optimizer.zero_grad(set_to_none=False)
        for i, batch in enumerate(batches):
            self.parallel.require_backward_grad_sync = i + 1 == len(batches)  # what no_sync() sets
            with self.bf16:
                loss = self.parallel(*self.text.batch(batch, self.device))
            (loss * (len(batch) / rows)).backward()
            total += loss.item() * len(batch)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip or math.inf)
        if not math.isfinite(norm):
            sys.exit(f"gpt.py: the gradients of step {self.step + 1} are not finite; try a lower --lr")
        self.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()
        return total, rows

    @torch.no_grad()
    def validation(self):
        sums = torch.zeros(2, dtype=torch.float64)
        own = self.text.validation[self.rank :: self.world]
        for i in range(0, len(own), self.options.batch):
            part = own[i : i + self.options.batch]
            with self.bf16:
                loss = self.model(*self.text.batch(part, self.device))
            sums += torch.tensor([loss.item() * len(part), len(part)], dtype=torch.float64)
        return self.mean(sums)

    def mean(self, sums):
        self.summed = sums.to(self.device)
        dist.all_reduce(self.summed)
        return (self.summed[0] / self.summed[1]).item()

    def run(self):
        o, sums, begun = self.options, torch.zeros(2, dtype=torch.float64), time.monotonic()
        told = os.environ.get("DDPRUN_PROGRESS_FD")
        progress = os.fdopen(int(told), "w", 1) if told else None
        stop_file, snapshot_file = os.environ.get("DDPRUN_STOP_FILE", ""), os.environ.get("DDPRUN_SNAPSHOT_FILE", "")
        asked = self.asked = torch.zeros(2, device=self.device)  # whether any rank is to stop, or to write a snapshot
        while self.step < o.steps and not asked[0]:
            crashes = self.rank == o.crash_rank and self.step == o.crash_at_step
            if crashes and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
                os.kill(os.getpid(), signal.SIGKILL)
            sums += torch.tensor(self.take_step(), dtype=torch.float64)
            if self.step % o.log_every == 0 or self.step == o.steps:
                windows = sums[1].item() * self.world  # before the sum over all ranks takes their place
                loss = self.mean(sums)
                if self.rank == 0:
                    speed = windows * o.context / (time.monotonic() - begun)
                    print(f"step={self.step} loss={loss:.6f} tokens/s={speed:.0f}", flush=True)
                sums.zero_()
                begun = time.monotonic()
            if self.step % o.validate_every == 0 if o.validate_every else self.consumed == len(self.text.training):
                paused = time.monotonic()
                loss = self.validation()
                if self.rank == 0:
                    print(f"epoch={self.epoch} step={self.step} validation={loss:.6g}", flush=True)
                begun += time.monotonic() - paused
            asked[0], asked[1] = os.path.exists(stop_file), os.path.exists(snapshot_file)
            dist.all_reduce(asked, dist.ReduceOp.MAX)  # all stop after the same step
            if asked[1] and os.environ["LOCAL_RANK"] == "0" and os.path.exists(snapshot_file):
                os.remove(snapshot_file)  # it is being written
            due = self.step % o.snapshot_every == 0 or self.step == o.steps or asked.any()
            if o.snapshot and self.rank == 0 and due:
                self.save()
            if progress:
                print(f"step={self.step} snapshot={self.saved}", file=progress)
        return bool(asked[0])

    @torch.no_grad()
    def sample(self):
        vocabulary = bytes.fromhex(self.metadata["vocabulary"])
        tokens = [max(vocabulary.find(b"\n"), 0)]
        for i in range(self.options.sample):
            logits = self.model(torch.tensor([tokens[-self.options.context :]], device=self.device))[0, -1]
            shares = (logits[: len(vocabulary)].double().cpu() / 0.8).softmax(0).cumsum(0)
            random = (1 + uniform(self.options.seed, i, 1).item()) / 2
            tokens.append(min(int((shares <= random).sum()), len(vocabulary) - 1))
        text = bytes(vocabulary[token] for token in tokens[1:]).decode(errors="replace").replace("\ufffd", "?")
        return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)

    def finish(self):
        loss = self.validation()
        if self.rank == 0:
            if self.options.save:
                write_model(self.options.save, self.model, self.metadata)
            if self.options.sample and not self.options.evaluate:
                print(f"--- sample\n{self.sample()}\n---")
            print(f"validation={loss:.9g}", flush=True)


def main():
    options = arguments()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if "DDPRUN_STOP_FILE" in os.environ:  # a stop comes as this file, too, and the worker ends after a last snapshot
        signal.signal(signal.SIGTERM, lambda *_: None)
    training = Training(options)
    stopped = False if options.evaluate else training.run()
    if not stopped:
        training.finish()
    dist.barrier()  # no rank destroys the group while another still uses it
    # `training` still has the tensors that were reduced last: else PyTorch 1.13 can deadlock here (cnn.py says why).
    dist.destroy_process_group()
    sys.exit(128 + signal.SIGTERM if stopped else 0)


if __name__ == "__main__":
    main()
