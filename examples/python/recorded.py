"""An error that is told: with @record the exception is written to the file that the launcher named, and stands in its report.

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
