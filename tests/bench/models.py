#!/usr/bin/env python3
"""Models that people know, two ranks on this host: the same training in C++ under ddprun, in Python under ddprun with
cold and with warm starts, and in Python under torchrun. From the launcher's exec to the first step; a step; from the
SIGKILL of a rank to the next step after the restart; memory of a rank; lines of the program.

    models.py [--models gpt,mnist] [--subjects torchrun,ddprun]

The programs are those of examples/, unchanged (build the targets gpt, gpt_torch and mnist); they give the same losses.
$PT_PYTHON is a Python with torch. What is missing is left out with a note."""
import os
import re
import signal
import statistics
import subprocess
import threading
import time
from pathlib import Path

from lines_of_code import lines_of_code
from report import Row, collect, main
from restart_gap import server_is_prepared
from subjects import DDPRUN, PYTHON, note
from workplace import HERE, descendants, folder, memory_kib, start, stop, wait_until

RANKS = 2
EXAMPLES = HERE.parent.parent / "examples"
BIN = Path(DDPRUN).parent
COLD, WARM, TORCHRUN = "Python, ddprun cold", "Python, ddprun warm", "Python, torchrun"
RAW, LIBTORCH = "C++", "C++ with libtorch"
ALONE, STEPS = "libtorch alone", "a step and a half"  # limits of the two above (goals.py)
# What each subject runs: a program of build/bin, or a script; and what of examples/ a reader has to read for it.
COMMON = ["option_table.h", "needs.h", "line_clock.h", "output_files.h", "random.h"]
RUN = ["training_run.*", "torch/module_run.*", *COMMON]
GPT_TORCH = ["torch/gpt_torch.cc", "torch/bfloat16_products.h", "torch/fused_adamw.h", "gpt/gpt_options.*",
             "gpt/gpt_shape.*", "gpt/model_file.*", "gpt/sample_text.*", "gpt/text.*", "gpt/gpt_model.h",
             "gpt/kernels.h", "gpt/adam_step.h", *RUN]
PROGRAMS = {
    "gpt": {RAW: ("gpt", ["gpt/*.cc", "gpt/*.h", "gpt/*.cu", "gpt/*.cuh", "cublas_library.*", "training_run.*",
                          *COMMON]),
            LIBTORCH: ("gpt_torch", GPT_TORCH),
            TORCHRUN: ("gpt.py", ["python/gpt.py", "python/gpt_model.py"])},
    "mnist": {LIBTORCH: ("mnist", ["torch/mnist.cc", "torch/digits.*", *RUN]),
              TORCHRUN: ("mnist.py", ["python/mnist.py"])},
}
SHORTEST = {"gpt": 30, "mnist": 100}  # steps before the kill
STEP = re.compile(rb"\bstep=(\d+) loss=")


class Lines:
    """The steps that a job has told, with the times of their lines. A thread reads, so that no line waits."""

    def __init__(self, process):
        self.steps = []  # (step, time)
        self._resumed = None  # how many of them were there when the ranks said that they resume
        self._output = process.stdout
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._output:
            if found := STEP.search(line):
                self.steps.append((int(found[1]), time.time()))
            elif b"resumed from " in line:
                self._resumed = len(self.steps)

    def first_again(self, before):
        """When the first step after a restart was told, `before` being the number of those before it; None: not yet.
        The ranks resume behind their last step if that was saved, and elsewhere tell a step that they have told."""
        if self._resumed is not None:
            return self.steps[self._resumed][1] if len(self.steps) > self._resumed else None
        return next((at for (old, _), (step, at) in zip(self.steps[before - 1:], self.steps[before:]) if step <= old),
                    None)


def command(model, name, where):
    program = PROGRAMS[model][name if name in PROGRAMS[model] else TORCHRUN][0]
    options = ["--log-every", 1, "--snapshot-every", 10]
    # So long that the job is killed first. The end of an epoch costs a validation, which no step of the median has.
    options += {"gpt": ["--steps", 10**6], "mnist": ["--epochs", 10**4]}[model]
    both = ["--nproc-per-node", RANKS, "--max-restarts", 1]
    if not program.endswith(".py"):
        return [DDPRUN, "--standalone", *both, BIN / program, *options, "--snapshot-dir", where / "snapshots"]
    script = [EXAMPLES / "python" / program, *options, "--snapshot", where / "snapshot.pt"]
    if name == TORCHRUN:
        return [PYTHON, "-m", "torch.distributed.run", "--standalone", "--monitor-interval", 0.1, *both, *script]
    warm = "always" if name == WARM else "off"
    return [DDPRUN, "-v", "--standalone", f"--warm={warm}", "--python", PYTHON, *both, *script]


def workers(launcher):
    """{rank: process id} of the processes that have a rank and started no other one that has it."""
    found = {}
    for pid in descendants(launcher):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if rank := re.search(rb"(?:^|\0)RANK=(\d+)\0", environment):
            found.setdefault(int(rank[1]), pid)
    return found


def loaded(model):
    """Until all ranks' programs with libtorch have been loaded at once, and end without having done anything."""
    begun = time.monotonic()
    ranks = [start([BIN / PROGRAMS[model][LIBTORCH][0], "--help"], stdout=subprocess.DEVNULL) for _ in range(RANKS)]
    if any([rank.wait(60) for rank in ranks]):
        raise RuntimeError("--help failed")
    return {"launch to first step (s)": time.monotonic() - begun}


def with_limits(rows, model):
    """The rows, and one for the least that lies between a kill and the next step: of the program's own steps."""
    steps = [row for row in rows if row.measure == f"{model}, a step (ms)" and row.subject == RAW]
    return rows + [Row(f"{model}, kill to next step (s)", STEPS, [1.5 * ms / 1000 for ms in row.numbers()], TORCHRUN)
                   for row in steps]


def one_job(model, name):
    where = folder()
    begun = time.time()
    with open(where / "log", "wb") as log:
        process = start(command(model, name, where), stdout=subprocess.PIPE, stderr=log)
    lines = Lines(process)

    def ready():
        if len(lines.steps) <= SHORTEST[model]:
            return process.poll() is not None
        # Also what ddprun prepares while a job trains, which takes seconds of weeks.
        return name != WARM or server_is_prepared(where / "log", lines.steps[0][1])

    try:
        if not wait_until(ready, 180, 0.01) or process.poll() is not None:
            raise RuntimeError(f"no {SHORTEST[model]} steps: {(where / 'log').read_text()[-300:]}")
        first = list(lines.steps)
        ranks = workers(process.pid)
        memory = [memory_kib(pid)[1] / 1024 for pid in ranks.values()]
        before = len(lines.steps)
        os.kill(ranks[RANKS - 1], signal.SIGKILL)
        killed = time.time()
        resumed = wait_until(lambda: lines.first_again(before) or process.poll() is not None and -1, 180, 0.002)
        if not resumed or resumed < 0:
            raise RuntimeError(f"no step after the restart: {(where / 'log').read_text()[-300:]}")
    finally:
        stop(process)
    gaps = [after - earlier for (_, earlier), (_, after) in zip(first, first[1:])]
    return {"launch to first step (s)": first[0][1] - begun, "a step (ms)": statistics.median(gaps[5:]) * 1000,
            "kill to next step (s)": resumed - killed, "memory of a rank (MB)": statistics.mean(memory),
            "lines of the program": sum(map(lines_of_code, files_of(model, name)))}


def files_of(model, name):
    patterns = PROGRAMS[model][name if name in PROGRAMS[model] else TORCHRUN][1]
    return [path for pattern in patterns for path in EXAMPLES.glob(pattern)]


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


def present(model, wanted):
    """The subjects that were asked for and are there."""
    found = []
    for name in [RAW, LIBTORCH, COLD, WARM, TORCHRUN]:
        if name not in PROGRAMS[model] and name not in (COLD, WARM):
            continue
        if ("torchrun" if name == TORCHRUN else "ddprun") not in wanted:
            continue
        program = PROGRAMS[model].get(name, ("", ""))[0]
        if name in (RAW, LIBTORCH) and not (BIN / program).exists():
            note(f"no {BIN / program}: build the target {program}")
        elif name not in (RAW, LIBTORCH) and not has_torch():
            note(f"{PYTHON} has no torch ($PT_PYTHON)")
        else:
            found.append(name)
    return found


def measure(options):
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # else some of torchrun's restarts fail
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    os.environ["XDG_CACHE_HOME"] = str(folder())
    rows = []
    for model in getattr(options, "models", "gpt" if options.quick else "gpt,mnist").split(","):
        names = present(model, options.subjects)
        if LIBTORCH in names:
            names.append(ALONE)
        found = collect(f"{model},", names, options.repeats,
                        lambda name: loaded(model) if name == ALONE else one_job(model, name), peer=TORCHRUN)
        rows += with_limits(found, model)
    return rows


if __name__ == "__main__":
    main(measure, lambda parser: parser.add_argument("--models", default="gpt,mnist", help="default %(default)s"))
