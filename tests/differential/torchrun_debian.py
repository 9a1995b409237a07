#!/usr/bin/python3
"""The torchrun of Debian's python3-torch (1.13), which is older than Debian's Python.

Since Python 3.11 a loop over an enumeration of flags has its single bits only, so that 1.13 takes 0 and 3 of
--redirects and --tee, its own defaults among them, for nothing at all. Here they mean what they did on
the Pythons of its time."""
import re
import sys

from torch.distributed.elastic.multiprocessing import Std
from torch.distributed.run import main

from_str = Std.from_str


def with_all_values(text):
    if re.fullmatch("[0-3]", text):
        return Std(int(text))
    from_str(text)  # refuses what is no such text
    return {int(rank): Std(int(value)) for rank, value in (pair.split(":") for pair in text.split(",") if pair)}


Std.from_str = with_all_values
sys.exit(main())
