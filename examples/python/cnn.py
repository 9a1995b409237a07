"""A convolutional network of MNIST's size, trained on generated images: each class is a fixed pattern with noise.

    ddprun --standalone --nproc-per-node=2 cnn.py"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
                                      nn.MaxPool2d(2), nn.Flatten())
        self.classes = nn.Linear(16 * 5 * 5, 10)

    def forward(self, images):
        return self.classes(self.features(images))


def digits(count, seed):
    patterns = torch.randn(10, 1, 28, 28, generator=torch.Generator().manual_seed(7))
    maker = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=maker)
    return TensorDataset(patterns[labels] + torch.randn(count, 1, 28, 28, generator=maker), labels)


def right_answers(model, data):
    """The number of right answers over all ranks, as a tensor."""
    images, labels = data.tensors
    rank, world = dist.get_rank(), dist.get_world_size()
    with torch.no_grad():
        right = (model(images[rank::world]).argmax(1) == labels[rank::world]).sum()
    dist.all_reduce(right)
    return right


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(Network())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = digits(1024, seed=1)
    sampler = DistributedSampler(data, shuffle=True)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for images, labels in DataLoader(data, batch_size=64, sampler=sampler):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    test = digits(512, seed=2)
    # This variable keeps the tensor alive until the group is destroyed. Otherwise PyTorch 1.13 can deadlock there: it holds
    # Python's global interpreter lock while it waits for the thread that reduced the tensor. If that thread drops the last
    # reference to the tensor, it needs this lock too.
    right = right_answers(model, test)
    accuracy = right.item() / len(test)
    total = sum(p.double().sum() for p in model.parameters()).item()
    print(f"RESULT rank={dist.get_rank()} accuracy={accuracy:.4f} weights={total:.6f}", flush=True)
    dist.barrier()  # no rank destroys the group while another still uses it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
