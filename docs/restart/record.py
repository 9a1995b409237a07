#!/usr/bin/env python3
"""Runs the job of the picture twice, warm and cold, and writes what happened: record.py BIN PYTHON RUN.json."""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

RANKS, LAST, CRASH = 4, 300, 200  # by then the fork server is ready


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def play(ddprun, python, warm):
    """One run: seconds since the crash of each step of each rank near it, and of each line of ddprun's own."""
    here = pathlib.Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [ddprun, "--standalone", f"--nproc-per-node={RANKS}", f"--warm={warm}", "-v", "--timestamps=always",
             f"--python={python}", here / "steps.py", folder, str(LAST), str(CRASH)],
            capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
        if run.returncode:
            sys.exit(run.stderr)
        notes = [(pathlib.Path(folder) / str(rank)).read_text().split("\n")[:-1] for rank in range(RANKS)]
    crash = next(float(line.split()[0]) for line in notes[1] if line.endswith("crash"))
    near = [[line.split() for line in lines if not line.endswith("crash") and float(line.split()[0]) > crash - 1]
            for lines in notes]
    steps = [[(round(float(at) - crash, 4), int(generation), int(step)) for at, generation, step in lines]
             for lines in near]
    lines = [(round(moment(at) - crash, 3), text)
             for at, text in re.findall(r"^(\S+Z) ddprun: (.*)$", run.stderr, re.MULTILINE)]
    return {"steps": steps, "lines": lines}


def main(programs, python, result):
    ddprun = pathlib.Path(programs) / "ddprun"
    torch = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], check=True, capture_output=True,
                           text=True).stdout.strip()
    recording = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, PyTorch {torch}",
        "warm": play(ddprun, python, "auto"),
        "cold": play(ddprun, python, "off"),
    }
    pathlib.Path(result).write_text(json.dumps(recording, separators=(",", ":")).replace("],[", "],\n[") + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
