"""A loop of Ignite with its own handlers: SIGTERM ends the run after the step, and a Checkpoint is written then.
Argument: steps."""
import os
import signal
import sys
import time

import ignite.distributed as idist
import torch
from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint, DiskSaver
from steps import begin_step

asked = []


def train(_):
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    model = idist.auto_model(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(engine, batch):
        time.sleep(0.05)
        begin_step(engine.state.iteration)
        model(batch[0]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    trainer = Engine(step)
    objects = {"trainer": trainer, "model": model, "optimizer": optimizer}
    save = Checkpoint(objects, DiskSaver("ignite", require_empty=False), n_saved=1, filename_pattern="{name}.{ext}",
                      greater_or_equal=True)
    if os.path.exists("ignite/checkpoint.pt"):
        Checkpoint.load_objects(objects, torch.load("ignite/checkpoint.pt"))
    begin = trainer.state.iteration or 0
    print(f"trains from step {begin}", flush=True)

    @trainer.on(Events.ITERATION_COMPLETED)
    def look(engine):
        if engine.state.iteration == begin + 5:
            print("has done 5 steps", flush=True)
        if idist.all_reduce(float(len(asked))) > 0:
            save(engine)
            engine.terminate()

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(80_000, 8)), batch_size=8)
    trainer.run(data, max_epochs=1, epoch_length=int(sys.argv[1]))
    idist.barrier()
    if not asked:
        print(f"finished at step {trainer.state.iteration}", flush=True)


with idist.Parallel(backend="gloo") as parallel:
    parallel.run(train)
sys.stdout.flush()
os._exit(0)  # PyTorch 2.15 may abort while the interpreter ends (pytorch issue 190489)
