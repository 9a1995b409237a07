"""What fsdp2.py, tensor_parallel.py and pipeline.py train: blocks of two linear layers, on samples that are generated.

A step has one global batch, whatever the number of workers. So any division of model or batch gives the numbers of one
process, but for the rounding of sums."""
import torch
from torch import nn

INPUTS, WIDTH, HIDDEN, BLOCKS, BATCH = 16, 64, 128, 4, 48


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(INPUTS, WIDTH)
        self.blocks = nn.ModuleDict({str(i): Block() for i in range(BLOCKS)})
        self.last = nn.Linear(WIDTH, 1)

    def forward(self, x):
        """A stage of a pipeline has only some of the layers: the others are None, or are not there."""
        x = self.first(x) if self.first else x
        for block in self.blocks.values():
            x = block(x)
        return self.last(x) if self.last else x


def make_model():
    """The same first weights in every process."""
    torch.manual_seed(0)
    return Model()


def global_batch(step):
    """The inputs (BATCH, INPUTS) and targets (BATCH, 1) of a step."""
    inputs = torch.randn(BATCH, INPUTS, generator=torch.Generator().manual_seed(step))
    return inputs, (inputs * torch.linspace(-1, 1, INPUTS)).sum(1, keepdim=True).sin()


def loss_of(outputs, targets):
    return nn.functional.mse_loss(outputs, targets)
