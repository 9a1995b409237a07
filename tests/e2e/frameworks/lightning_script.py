"""An unmodified script of Lightning: checkpoints in a folder, the newest one at the start. Argument: steps.
DIRECTORY=no: no folder is given, so that only Lightning's own file for a requeue can be found again."""
import os
import sys
import time

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from steps import begin_step


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 1)

    def on_train_start(self):
        self.begin = self.trainer.global_step
        print(f"trains from step {self.begin}", flush=True)

    def training_step(self, batch, _):
        time.sleep(0.05)
        begin_step(self.trainer.global_step + 1)
        if self.trainer.global_step == self.begin + 5:
            print("has done 5 steps", flush=True)
        return self.net(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(4000, 8)), batch_size=8, num_workers=1)
folder = {} if os.environ.get("DIRECTORY") == "no" else {"dirpath": "lightning"}
local = int(os.environ["LOCAL_WORLD_SIZE"])
trainer = lightning.Trainer(
    accelerator="cpu", devices=local, num_nodes=int(os.environ["WORLD_SIZE"]) // local, strategy="ddp",
    max_steps=int(sys.argv[1]), logger=False, enable_progress_bar=False, enable_model_summary=False,
    callbacks=[ModelCheckpoint(every_n_train_steps=1000, save_last=bool(folder), **folder)])
trainer.fit(Net(), data, ckpt_path="last" if folder else None)
if trainer.is_global_zero:
    torch.save({}, "lightning.final")
print(f"finished at step {trainer.global_step}", flush=True)
