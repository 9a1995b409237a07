#!/usr/bin/env python3
"""init_process_group('gloo') of a job on two hosts: what it costs that the workers' store asks who has each connection
open (store/door). Two network namespaces with a cable between them; RANKS (default 4) workers on each.

  ddprun        as it is: the store asks the other host
  ddprun any    --store-allow=any: it asks nobody
  torchrun      the peer

Needs root, iproute2, and $PT_PYTHON with torch."""
import atexit
import os
import secrets
import subprocess

from init import WORKER
from report import collect, main
from subjects import DDPRUN, PYTHON, TORCHRUN, present
from workplace import finish, folder, free_port, start, times

RANKS = int(os.environ.get("RANKS", "4"))
HOSTS = {f"bench{os.getpid()}-{number}": f"10.79.0.{number + 1}" for number in range(2)}


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def cable():
    """Makes the two hosts, each with one cable, `eth0`."""
    for name in HOSTS:
        ip("netns", "add", name)
        atexit.register(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
    one, two = HOSTS
    ip("link", "add", "eth0", "netns", one, "type", "veth", "peer", "name", "eth0", "netns", two)
    for name, address in HOSTS.items():
        for words in (["link", "set", "lo", "up"], ["addr", "add", f"{address}/24", "dev", "eth0"],
                      ["link", "set", "eth0", "up"]):
            ip("-n", name, *words)


def on(host, number, name, port, worker, secret):
    common = ["--nnodes=2", f"--nproc-per-node={RANKS}", f"--rdzv-endpoint={HOSTS[list(HOSTS)[0]]}:{port}",
              f"--node-rank={number}", f"--local-addr={HOSTS[host]}", "--rdzv-id=bench"]
    if name == "torchrun":
        words = [TORCHRUN, *common, "--rdzv-backend=c10d", f"--rdzv-conf=is_host={int(number == 0)}"]
    else:
        words = [DDPRUN, *common, "--ledger=memory", f"--secret-file={secret}"]
        words += ["--store-allow=any"] if name == "ddprun any" else []
    return ["ip", "netns", "exec", host, *words, *worker]


def one_init(name):
    where = folder()
    (where / "worker.py").write_text(WORKER)
    worker = [PYTHON, where / "worker.py", where]
    if name == "torchrun":  # it puts the interpreter in front itself
        worker = worker[1:]
    secret = where / "secret"
    secret.write_text(secrets.token_hex(32))
    secret.chmod(0o600)
    env = dict(os.environ, GLOO_SOCKET_IFNAME="eth0")
    port = free_port()
    agents = [start(on(host, number, name, port, worker, secret), env=env) for number, host in enumerate(HOSTS)]
    codes = [finish(agent, 120) for agent in agents]
    ready = times(where, "initialised.*")
    if any(codes) or len(ready) != 2 * RANKS:
        raise RuntimeError(f"exit codes {codes}, {len(ready)} of {2 * RANKS} ranks initialised")
    return (max(ready) - max(times(where, "imported.*"))) / 1e6


def measure(options):
    cable()
    names = present(options.subjects, ["torchrun", "ddprun"])
    names += ["ddprun any"] if "ddprun" in names else []
    peer = "ddprun any"
    return collect(f"init_process_group('gloo'), two hosts, {2 * RANKS} ranks (ms)", names, options.repeats, one_init,
                   peer)


if __name__ == "__main__":
    main(measure)
