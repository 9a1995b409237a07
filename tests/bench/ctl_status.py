#!/usr/bin/env python3
"""How long an operator waits for a large job's status, from exec to exit of `ddpctl status`. The leader is a real
ddprun; the other nodes are link_nodes (build the targets ddprun, ddpctl and link_nodes). The goals are for a machine
that does nothing else."""
import os
import subprocess
import time

from faults import HERE, Crowd, attempt_meeting, room_for_crowds, rows, sample
from report import main
from workplace import folder

DDPCTL = os.environ.get("DDPCTL", str(HERE.parent.parent / "build" / "bin" / "ddpctl"))


def status(nodes, repeats):
    ledger = folder() / "ledger"
    crowd = Crowd(nodes, silent=True, ledger=f"directory:{ledger}")
    try:
        crowd.hear("welcomed")
        crowd.hear("met")
        time.sleep(2)
        for _ in range(repeats):
            begun = time.monotonic()
            text = subprocess.run([DDPCTL, "status", f"--ledger={ledger}", f"--secret-file={crowd.secret}"], check=True,
                                  capture_output=True, text=True).stdout
            took = time.monotonic() - begun
            if f"with {nodes} workers" not in text:
                raise RuntimeError(f"not the status of {nodes} nodes: {text[:300]}")
            sample(f"{nodes} nodes: ddpctl status", "s", took)
    finally:
        crowd.end()


def measure(options):
    room_for_crowds()
    for nodes in [1000] if options.quick else [1000, 10000]:
        attempt_meeting(status, nodes, options.repeats)
    return rows()


if __name__ == "__main__":
    main(measure)
