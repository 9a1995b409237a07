"""An exception in the launcher's report: @record writes it to the file that the launcher has named, and the launcher reads it.

    ddprun --standalone --nproc-per-node=2 recorded.py"""
import os

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    rank = int(os.environ["RANK"])
    if rank == 1:
        print(f"RESULT rank={rank}", flush=True)
        raise ValueError("the learning rate must not be negative: -0.5")


if __name__ == "__main__":
    main()
