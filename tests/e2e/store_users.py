"""A worker on one of two hosts, for store_users.sh: everything of a PyTorch job that connects to the workers' store.

The worker itself, a child that it forks (DataLoader), and one that it spawns (mp.spawn). In generation 0 rank 1 fails,
so generation 1 comes from the fork server, where there is one. At the end each rank waits for the file "go".
"""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

folder, rank = sys.argv[1], os.environ["RANK"]


def call_store(_, name):
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False,
                          timeout=datetime.timedelta(seconds=60))
    store.set(f"{name}.{os.environ['RANK']}", "was here")
    # A client of torch 1.13 that ends without having waited for an answer may be gone too early.
    store.get(f"{name}.{os.environ['RANK']}")


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        call_store(index, "loader")
        return index


def main():
    begin = time.monotonic()
    dist.init_process_group("gloo")
    print(f"init_process_group took {1000 * (time.monotonic() - begin):.1f} ms", flush=True)
    dist.barrier()
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        if rank == "1":
            sys.exit(9)
        time.sleep(300)
    list(torch.utils.data.DataLoader(Samples(), num_workers=1))
    mp.spawn(call_store, ("spawned",))
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    for who in range(int(os.environ["WORLD_SIZE"])):
        assert store.get(f"loader.{who}") == store.get(f"spawned.{who}") == b"was here"
    with open(f"{folder}/ready.{rank}", "w") as file:
        file.write(f"{os.environ['MASTER_ADDR']} {os.environ['MASTER_PORT']}\n")
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.05)
    dist.barrier()
    assert dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]),
                         is_master=False).num_keys() > 0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
