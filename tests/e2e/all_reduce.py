"""An ordinary PyTorch script: adds up rank + 1 over all ranks. With --crash-once the last rank dies after the first sum
of the first attempt."""
import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
world = dist.get_world_size()
assert total.item() == world * (world + 1) / 2, total
if "--crash-once" in sys.argv and attempt == 0:
    if dist.get_rank() == world - 1:
        os._exit(3)
    dist.barrier()  # never met by the dead one
print(f"generation {attempt}: sum {total.item():g}", flush=True)
dist.destroy_process_group()
os._exit(0)  # PyTorch 2.15 may abort while the interpreter ends (pytorch issue 190489)
