"""A loop of Accelerate that asks the module `ddprun`. Argument: steps."""
import os
import sys
import time

import ddprun
import torch
from accelerate import Accelerator
from ddprun.accelerate import newest_checkpoint, requests, save_state
from steps import begin_step


class Position:
    step = 0

    def state_dict(self):
        return {"step": self.step}

    def load_state_dict(self, state):
        self.step = state["step"]


accelerator, position = Accelerator(cpu=True), Position()
model = torch.nn.Linear(8, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01))
accelerator.register_for_checkpointing(position)
os.makedirs("accelerate", exist_ok=True)
if newest := newest_checkpoint("accelerate"):
    accelerator.load_state(newest)
print(f"trains from step {position.step}", flush=True)
saved, stop, begin = -1, False, position.step
while position.step < int(sys.argv[1]) and not stop:
    time.sleep(0.05)
    begin_step(position.step + 1)
    accelerator.backward(model(torch.ones(4, 8)).square().mean())
    optimizer.step()
    optimizer.zero_grad()
    position.step += 1
    if position.step == begin + 5:
        print("has done 5 steps", flush=True)
    stop, snapshot = requests(accelerator)
    if stop or snapshot:
        save_state(accelerator, f"accelerate/checkpoint_{position.step}")
        saved = position.step
    ddprun.progress(position.step, snapshot=saved if saved >= 0 else None)
if not stop:
    if accelerator.is_main_process:
        torch.save({}, "accelerate.final")
    print(f"finished at step {position.step}", flush=True)
accelerator.end_training()
