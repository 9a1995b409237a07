"""Training with the libraries that people use, which resumes after each crash to the same weights.

programs.py KIND FOLDER CRASHES: trains CRASHES + 4 steps on 2 ranks. In each generation but the last one, rank 1 dies
after a step. Generation 0 waits before its crash until FOLDER/go exists. Rank 0 prints the sum of the weights, exactly.
"""
import os
import sys
import time

import torch

kind, folder, crashes = sys.argv[1], sys.argv[2], int(sys.argv[3])
rank, generation = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
# The same number of steps, however often it crashes.
STEPS = int(os.environ["STEPS"])


def after_step(step):
    """A step is done, and saved."""
    os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=%d\n" % step)
    if generation >= crashes or step <= generation:
        return
    end = time.monotonic() + 120
    while generation == 0 and not os.path.exists(folder + "/go") and time.monotonic() < end:
        time.sleep(0.05)
    if rank == 1:
        os._exit(3)
    time.sleep(60)


def tell(model):
    if rank == 0:
        total = sum(each.double().sum() for each in model.parameters())
        sys.stdout.write("weights %s\n" % total.item().hex())


class Samples(torch.utils.data.Dataset):
    """All samples are the same, so it does not matter where a library resumes."""

    def __len__(self):
        return 2 * STEPS

    def __getitem__(self, _):
        return {"x": torch.linspace(-1, 1, 8), "labels": torch.tensor([0.5])}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def forward(self, x, labels=None):
        out = self.layers(x)
        return {"loss": torch.nn.functional.mse_loss(out, labels), "out": out}


def with_lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def training_step(self, batch, _):
            return self.net(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    class Saver(lightning.Callback):
        def on_train_batch_end(self, trainer, *_):
            trainer.save_checkpoint(folder + "/new.ckpt")
            if rank == 0:
                os.replace(folder + "/new.ckpt", folder + "/last.ckpt")
            trainer.strategy.barrier()
            after_step(trainer.global_step)

    trainer = lightning.Trainer(max_steps=STEPS, accelerator="cpu", devices=2, strategy="ddp", callbacks=[Saver()],
                                logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False)
    module, last = Module(), folder + "/last.ckpt"
    trainer.fit(module, torch.utils.data.DataLoader(Samples(), batch_size=1),
                ckpt_path=last if os.path.exists(last) else None, weights_only=False)
    tell(module)


def with_trainer():
    import transformers

    class Saver(transformers.TrainerCallback):
        def on_save(self, args, state, *_, **__):
            # Each rank saves a part of it: what rank 0 is still writing would be lost with it.
            torch.distributed.barrier()
            after_step(state.global_step)

    arguments = transformers.TrainingArguments(
        folder, max_steps=STEPS, per_device_train_batch_size=1, save_steps=1, save_total_limit=2, learning_rate=0.01,
        use_cpu=True, report_to=[], disable_tqdm=True, logging_strategy="no", remove_unused_columns=False)
    model = Net()
    trainer = transformers.Trainer(model, arguments, train_dataset=Samples(), callbacks=[Saver()])
    saved = any(name.startswith("checkpoint-") for name in os.listdir(folder))
    trainer.train(resume_from_checkpoint=saved)
    tell(model)


def with_accelerate():
    import accelerate

    accelerator = accelerate.Accelerator(cpu=True)
    model = Net()
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01))
    loader = accelerator.prepare(torch.utils.data.DataLoader(Samples(), batch_size=1))
    saved = sorted(int(name[5:]) for name in os.listdir(folder) if name.startswith("state") and name[5:].isdigit())
    step = saved[-1] if saved else 0
    if saved:
        accelerator.load_state("%s/state%d" % (folder, step))
    for batch in loader:
        if step >= STEPS:
            break
        optimizer.zero_grad()
        accelerator.backward(model(**batch)["loss"])
        optimizer.step()
        step += 1
        accelerator.save_state(folder + "/new")
        accelerator.wait_for_everyone()
        if rank == 0:
            os.rename(folder + "/new", "%s/state%d" % (folder, step))
        accelerator.wait_for_everyone()
        after_step(step)
    tell(model)


def with_ddp():
    import torch.distributed as dist

    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(Net())
    optimizer, first = torch.optim.AdamW(model.parameters(), lr=0.01), 0
    if os.path.exists(folder + "/last.pt"):
        saved = torch.load(folder + "/last.pt")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
    sample = Samples()[0]
    for step in range(first + 1, STEPS + 1):
        optimizer.zero_grad()
        model(sample["x"] * (rank + 1), sample["labels"])["loss"].backward()
        optimizer.step()
        if rank == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
            torch.save(state, folder + "/new.pt")
            os.replace(folder + "/new.pt", folder + "/last.pt")
        dist.barrier()
        after_step(step)
    tell(model)


{"ddp": with_ddp, "lightning": with_lightning, "trainer": with_trainer, "accelerate": with_accelerate}[kind]()
