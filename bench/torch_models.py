"""Tandem's benchmark models in Python: sizes and dtypes are those of bench/models.cpp."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(1024))

    def forward(self, x):
        y = (x * self.weight).sigmoid() + x.tanh() * 0.5
        y = F.silu(y + x) * (-y * y).exp()
        y = F.gelu(y) - x.relu()
        return (y * y).sum()


class Mlp(nn.Module):
    def __init__(self, blocks=16, width=256):
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(blocks))

    def forward(self, x):
        for linear, norm in zip(self.linears, self.norms):
            x = x + F.gelu(linear(norm(x)))
        return (x * x).mean()


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.project(attended.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, context):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.view(-1))


def convolution(inputs, outputs, size, stride, padding):
    return nn.Conv2d(inputs, outputs, size, stride, padding, bias=False)


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = convolution(inputs, outputs, 3, stride, 1), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = convolution(outputs, outputs, 3, 1, 1), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(convolution(inputs, outputs, 1, stride, 0), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.norm1(self.conv1(x)).relu()
        return (self.norm2(self.conv2(y)) + self.shortcut(x)).relu()


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.stem_norm = convolution(3, 64, 7, 2, 3), nn.BatchNorm2d(64)
        blocks, width = [], 64
        for outputs in (64, 128, 256, 512):
            blocks += [
                ResidualBlock(width, outputs, 1 if width == outputs else 2),
                ResidualBlock(outputs, outputs, 1),
            ]
            width = outputs
        self.body = nn.Sequential(*blocks)
        self.classifier = nn.Linear(512, 1000)

    def forward(self, images, labels):
        x = F.max_pool2d(self.stem_norm(self.stem(images)).relu(), 3, 2, 1)
        return F.cross_entropy(self.classifier(self.body(x).mean((2, 3))).float(), labels)


class Lstm(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.input = nn.Linear(width, 4 * width)
        self.hidden = nn.Linear(width, 4 * width)

    def forward(self, x):
        h = c = torch.zeros_like(x[0])
        for t in range(x.shape[0]):
            add, keep, new, show = (self.input(x[t]) + self.hidden(h)).chunk(4, 1)
            c = keep.sigmoid() * c + add.sigmoid() * new.tanh()
            h = show.sigmoid() * c.tanh()
        return (h * h).mean()


def softplus_pair(inputs, hidden, outputs):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Softplus(), nn.Linear(hidden, outputs))


class SchNet(nn.Module):
    def __init__(self, width=64, radial=32, layers=3):
        super().__init__()
        self.embedding = nn.Embedding(20, width)
        self.register_buffer("centres", torch.linspace(0, 6, radial))
        self.filters = nn.ModuleList(softplus_pair(radial, width, width) for _ in range(layers))
        self.updates = nn.ModuleList(softplus_pair(width, width, width) for _ in range(layers))
        self.readout = softplus_pair(width, width // 2, 1)

    def energy(self, kinds, positions):
        apart = positions.unsqueeze(0) - positions.unsqueeze(1)
        distance = (apart * apart).sum(-1).add(1e-6).sqrt()
        basis = (-10.0 * (distance.unsqueeze(-1) - self.centres) ** 2).exp()
        cutoff = 0.5 * ((distance.clamp(max=6.0) * (math.pi / 6)).cos() + 1)
        x = self.embedding(kinds)
        for filter_, update in zip(self.filters, self.updates):
            messages = filter_(basis) * cutoff.unsqueeze(-1) * x.unsqueeze(0)
            x = x + update(messages.sum(1))
        return self.readout(x).sum()

    def forward(self, kinds, positions, energy_wanted, forces_wanted):
        moved = positions.detach().requires_grad_()
        found = self.energy(kinds, moved)
        (slope,) = torch.autograd.grad(found, moved, create_graph=True)
        return (found - energy_wanted) ** 2 + F.mse_loss(-slope, forces_wanted)


def make_chain(cuda, layers=0, vocabulary=0):
    return Chain(), [torch.randn(65536 if cuda else 8192, 1024)]


def make_mlp(cuda, layers=0, vocabulary=0):
    return Mlp(), [torch.randn(64, 256)]


def make_gpt(cuda, layers=0, vocabulary=0):
    depth, width, heads, words, context, batch = (
        (12, 768, 12, 50304, 512, 8) if cuda else (4, 256, 4, 8192, 128, 4)
    )
    vocabulary = vocabulary or words
    model = Gpt(layers or depth, width, heads, vocabulary, context)
    tokens, targets = (torch.randint(vocabulary, (batch, context)) for _ in range(2))
    return (model.bfloat16() if cuda else model), [tokens, targets]


def make_resnet(cuda, layers=0, vocabulary=0):
    batch, side, dtype = (64, 224, torch.bfloat16) if cuda else (8, 64, torch.float32)
    model = ResNet18().to(dtype=dtype, memory_format=torch.channels_last)
    images = torch.randn(batch, 3, side, side).to(dtype=dtype, memory_format=torch.channels_last)
    return model, [images, torch.randint(1000, (batch,))]


def make_lstm(cuda, layers=0, vocabulary=0):
    return Lstm(), [torch.randn(32, 16, 128)]


def make_schnet(cuda, layers=0, vocabulary=0):
    atoms = 128 if cuda else 48
    return SchNet(), [
        torch.randint(20, (atoms,)),
        torch.rand(atoms, 3) * 8,
        torch.tensor(0.0),
        torch.randn(atoms, 3),
    ]


MAKERS = {
    "chain": make_chain,
    "mlp": make_mlp,
    "gpt": make_gpt,
    "resnet": make_resnet,
    "lstm": make_lstm,
    "schnet": make_schnet,
}
