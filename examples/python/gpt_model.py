"""The model of gpt.py, with the names and shapes of transformers' GPT2LMHeadModel; its first weights and its files."""
import json, math, os, pathlib

import torch
from torch import nn
from torch.nn import functional


class Linear(nn.Module):
    """y = x W + b; the weight has the shape inputs × outputs (transformers' Conv1D)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(inputs, outputs)), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, Linear(width, 3 * width), Linear(width, width)

    def forward(self, x):
        rows, length, width = x.shape
        query, key, value = (part.view(rows, length, self.heads, -1).transpose(1, 2)
                             for part in self.c_attn(x).split(width, 2))
        if hasattr(functional, "scaled_dot_product_attention"):  # from PyTorch 2.0 on
            y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(2, 3) / math.sqrt(width // self.heads)
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            y = scores.masked_fill(later, -math.inf).softmax(3) @ value
        return self.c_proj(y.transpose(1, 2).reshape(rows, length, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = Linear(width, 4 * width), Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width), "wpe": nn.Embedding(context, width),
            "h": nn.ModuleList(Layer(width, heads) for _ in range(layers)), "ln_f": nn.LayerNorm(width)})

    def forward(self, tokens, targets=None):
        parts = self.transformer
        x = parts["wte"](tokens) + parts["wpe"](torch.arange(tokens.shape[1], device=tokens.device))
        for layer in parts["h"]:
            x = layer(x)
        logits = parts["ln_f"](x) @ parts["wte"].weight.t()  # the embedding, again
        return logits if targets is None else functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def signed(value):  # the same 64 bits, as PyTorch's integers have them
    return (value + 2**63) % 2**64 - 2**63


def uniform(seed, first, count):
    """examples/random.h: numbers in [-1, 1) as a function of seed and place."""
    z = torch.arange(first, first + count) * signed(0x9E3779B97F4A7C15)
    z = z + signed(seed * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> shift & (1 << 64 - shift) - 1)) * signed(factor)
    z = z ^ (z >> 31 & (1 << 33) - 1)
    return ((z >> 40 & (1 << 24) - 1) - (1 << 23)).float() / (1 << 23)


@torch.no_grad()
def first_weights(model, seed, layers):
    at = 0
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            scale = 0.02 * math.sqrt(3) / (math.sqrt(2 * layers) if "c_proj" in name else 1)
            weight.copy_(torch.tensor(scale, dtype=torch.float32) * uniform(seed, at, weight.numel()).view_as(weight))
        at += weight.numel()


def read_model(path):
    """Name → float32 tensor, and the metadata, of a safetensors file: length, header in JSON, data."""
    data = pathlib.Path(path).read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    metadata, values = header.pop("__metadata__", {}), bytearray(data[begin:])
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        flat = torch.frombuffer(values, dtype=torch.float32, count=(last - first) // 4, offset=first)
        tensors[name] = flat.view(entry["shape"]).clone()
    return tensors, metadata


def write_model(path, model, metadata):
    header, data = {"__metadata__": dict(metadata, format="pt")}, b""
    for name, weight in model.named_parameters():
        own = weight.detach().cpu().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(weight.shape), "data_offsets": [len(data), len(data) + len(own)]}
        data += own
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path + ".part").write_bytes(len(text).to_bytes(8, "little") + text + data)
    os.replace(path + ".part", path)  # atomic: a reader never finds an incomplete file
