#!/usr/bin/env python3
"""How long an operator waits for a large job's status, from exec to exit of `ddpctl status`. The leader is a real ddprun; the other
nodes are link_nodes (build the targets ddprun, ddpctl and link_nodes). The goals are for a machine that does nothing else."""
import os
import subprocess
import time

from faults import HERE, Crowd, attempt, found, sample, table
from report import options as common_options
from subjects import notes
from workplace import folder, isolate

DDPCTL = os.environ.get("DDPCTL", str(HERE.parent.parent / "build" / "bin" / "ddpctl"))
GOALS = {1000: 0.05, 10000: 0.5}


def status(nodes, goal, repeats):
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
            sample(f"{nodes} nodes: ddpctl status", goal, "s", took)
    finally:
        crowd.end()


if __name__ == "__main__":
    isolate()
    subprocess.run(["sysctl", "-qw", "net.ipv4.ip_local_port_range=1024 65000", "net.core.somaxconn=16384"], check=False)
    chosen = common_options()
    for nodes, goal in GOALS.items():
        attempt(status, nodes, goal, chosen.repeats)
    print(table())
    print(f"\n{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}.")
    for text in notes:
        print("\nNote:", text)
