"""Runs one case under one launcher and says what happened, without what differs from run to run."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 90  # seconds, for a launcher that takes seconds to start on a busy machine
NOISE = re.compile(r"^(SLURM|PET_|TORCH|OMP_|RANK$|WORLD_SIZE$|LOCAL_|GROUP_|ROLE_|MASTER_|CUDA_VIS|HIP_VIS|NCCL|PYTHON|LOGLEVEL)")


def free_port():
    """Below what ddprun takes for its jobs and what the kernel gives to clients: nobody gets it before the case does."""
    while True:
        port = random.randrange(10000, 20000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return str(port)


def words_of(line, out, port):
    worker = str(HERE / "worker.py")
    return [w.replace("WORKER", worker).replace("OUT", out).replace("PORT", port) for w in line.split()]


def environment_of(case, out):
    env = {k: v for k, v in os.environ.items() if not NOISE.match(k)}
    env["CASE_OUT"] = out
    # The same on a host with GPUs as on one without; the cases about devices say themselves which there are.
    if "--virtual-local-rank" not in case.args:
        env["CUDA_VISIBLE_DEVICES"] = ""
    env.update({k: v.replace("WORKERS", str(HERE)) for k, v in case.env.items()})
    return env


def workers_of(out):
    found = {}
    for path in sorted(pathlib.Path(out).glob("worker.*")):
        found[path.name[len("worker."):]] = json.loads(path.read_text())
    return found


def await_workers(count, out, process):
    end = time.monotonic() + LIMIT
    while len(workers_of(out)) < count and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


def plain_value(name, value, out, port):
    if name == "MASTER_PORT" and value == port:
        return "PORT"
    if name in ("MASTER_PORT", "TORCHELASTIC_RUN_ID") and re.fullmatch(r"\d{2,5}|[0-9a-f-]{16,36}", value):
        return "<made up>"
    if name == "MASTER_ADDR" and value in (socket.gethostname(), socket.getfqdn(), "localhost"):
        return "<this host>"
    if name == "TORCHELASTIC_TIMER_FILE":
        return "<a path>"
    if name == "TORCHELASTIC_ERROR_FILE":
        return re.sub(r"^.+(?=/attempt_)", "<base>", value)
    return value.replace(out, "OUT").replace(str(HERE), "WORKERS")


def seen_by(worker, given, out, port):
    env = {k: plain_value(k, v, out, port) for k, v in worker["env"].items()
           if given.get(k) != v and k not in ("_", "SHLVL", "PWD", "LC_CTYPE", "KMP_INIT_AT_FORK", "KMP_DUPLICATE_LIB_OK")}
    gone = [k for k in given if k not in worker["env"] and k not in ("_", "SHLVL")]
    return {"env": env, "gone": gone, "argv": [a.replace(out, "OUT") for a in worker["argv"]],
            "cwd": worker["cwd"] == os.getcwd(), "main": worker["main"]}


def files_below(folder):
    """Names and sizes, with the made-up part of the run's folder left out."""
    files = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file():
            name = re.sub(r"^[^/]*_[^/]{6,8}/", "RUN/", str(path.relative_to(folder)))
            files[name] = sorted(path.read_text(errors="replace").splitlines())
    return files


def lines_of(text):
    """What workers wrote, not what the launcher says of itself (its report shows their last lines); in any order."""
    text = re.sub(r"^={20,}\n(?:.*\n)*?={20,}$", "", text, flags=re.MULTILINE)
    return sorted(line for line in text.splitlines()
                  if re.search(r"(out|err) of rank \d", line) and not line.startswith("ddprun"))


def run(launcher, case):
    """launcher: the words in front of a case's."""
    out = tempfile.mkdtemp(prefix="differential")
    given = environment_of(case, out)
    port = free_port()
    started = []
    try:
        for index, line in enumerate(case.nodes or [case.args]):
            streams = [open(f"{out}/{name}.{index}", "w+") for name in ("stdout", "stderr")]
            # One CPU, so that what counts CPUs gives the same everywhere.
            front = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
            started.append((subprocess.Popen(front + launcher + words_of(line, out, port), env=given, stdin=subprocess.DEVNULL,
                                             stdout=streams[0], stderr=streams[1], start_new_session=True), streams))
        if case.signal:
            await_workers(case.workers, out, started[0][0])
            if started[0][0].poll() is None:  # one that knows not the option has ended
                os.kill(started[0][0].pid, case.signal)
        codes = [process.wait(LIMIT) for process, _ in started]
        texts = []
        for _, streams in started:
            for stream in streams:
                stream.seek(0)
            texts.append([stream.read() for stream in streams])
        return {"codes": codes, "workers": {k: seen_by(w, given, out, port) for k, w in workers_of(out).items()},
                "stdout": lines_of("".join(t[0] for t in texts)), "stderr": lines_of("".join(t[1] for t in texts)),
                "files": files_below(out + "/logs"), "said": texts[0][1][-2000:] if any(codes) else ""}
    finally:
        for process, _ in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        shutil.rmtree(out, ignore_errors=True)


if __name__ == "__main__":
    from cases import CASES
    for one in CASES:
        if one.name in sys.argv[2:]:
            print(json.dumps(run(sys.argv[1].split(), one), indent=1))
