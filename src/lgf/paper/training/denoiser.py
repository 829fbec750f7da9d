"""The denoiser p(x_1 | x_t, t) in torch, and its loss."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from lgf.paper.flow.denoiser import DenoiserSettings
from lgf.paper.layout import Layout


def noised(layout: Layout, x1: Tensor, t: Tensor) -> Tensor:
    """Noised tokens x_t [n, D] of data x_1 [n, D] at times t [n], by torch's current generator."""
    return torch.where(torch.rand(x1.shape) < t[:, None], x1, layout.mask)


def shuffled(layout: Layout, tokens: Tensor) -> Tensor:
    """The tokens [n, D] with the slots of each row in a random order, by torch's current generator."""
    if layout.slots < 2:
        return tokens
    header, slots = layout.cut(tokens)
    order = torch.rand(slots.shape[:2]).argsort(1)[:, :, None].expand_as(slots)
    return torch.cat([header, slots.gather(1, order).flatten(1)], 1)


class Denoiser(nn.Module):
    """Logits [n, D, levels] of x_1, given noised tokens [n, D] and times [n]."""

    def __init__(self, layout: Layout, settings: DenoiserSettings):
        super().__init__()
        self.layout = layout
        self.settings = settings
        self.net = (_BlockNet if settings.architecture == "blocks" else _Perceptron)(layout, settings)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """Logits [n, D, levels]."""
        return self.net(x, t)


def flow_loss(denoiser: Denoiser, x1: Tensor) -> Tensor:
    """Mean cross-entropy of x_1 at one random time per row; over masked tokens."""
    layout = denoiser.layout
    t = torch.rand(len(x1))
    x = noised(layout, x1, t)
    logits = denoiser(x, t)
    hidden = x == layout.mask
    return functional.cross_entropy(logits[hidden], x1[hidden], reduction="sum") / hidden.sum().clamp(min=1)


class _Perceptron(nn.Module):
    def __init__(self, layout: Layout, settings: DenoiserSettings):
        super().__init__()
        self.layout = layout
        self.first = _TokenSum(layout.tokens, layout.states, settings.width)
        self.time = nn.Linear(1, settings.width)
        layers: list[nn.Module] = [nn.ReLU(), nn.Dropout(settings.dropout)]
        for _ in range(settings.depth - 1):
            layers += [nn.Linear(settings.width, settings.width), nn.ReLU(), nn.Dropout(settings.dropout)]
        self.rest = nn.Sequential(*layers, nn.Linear(settings.width, layout.tokens * layout.levels))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        hidden = self.rest(self.first(x) + self.time(t[:, None]))
        return hidden.unflatten(1, (self.layout.tokens, self.layout.levels))


class _BlockNet(nn.Module):
    """Attention between blocks. Slots share all weights, so exchanging two slots exchanges their outputs."""

    def __init__(self, layout: Layout, settings: DenoiserSettings):
        super().__init__()
        self.layout = layout
        width = settings.width
        self.header_in = _TokenSum(layout.header, layout.states, width)
        self.slot_in = _TokenSum(layout.summand, layout.states, width)
        self.time = nn.Linear(1, width)
        self.layers = nn.ModuleList(
            _AttentionLayer(width, settings.heads, settings.dropout) for _ in range(settings.depth)
        )
        self.header_out = _Head(width, layout.header * layout.levels)
        self.slot_out = _Head(width, layout.summand * layout.levels)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        layout = self.layout
        header, slots = layout.cut(x)
        blocks = torch.cat([self.header_in(header)[:, None], self.slot_in(slots)], 1)
        hidden = blocks + self.time(t[:, None])[:, None]
        for layer in self.layers:
            hidden = layer(hidden)
        parts = [self.header_out(hidden[:, 0]), self.slot_out(hidden[:, 1:]).flatten(1)]
        return torch.cat(parts, 1).unflatten(1, (layout.tokens, layout.levels))


class _Head(nn.Module):
    """Layer norm and linear layer; it may have no outputs, as for a layout without header or slots."""

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.layer = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, outputs)) if outputs else None

    def forward(self, x: Tensor) -> Tensor:
        return x[..., :0] if self.layer is None else self.layer(x)


class _TokenSum(nn.Module):
    """A linear layer on the one-hots of `places` tokens, by summing embeddings."""

    offsets: Tensor

    def __init__(self, places: int, states: int, width: int):
        super().__init__()
        self.width = width
        self.table = nn.Embedding(places * states, width) if places else None
        self.register_buffer("offsets", torch.arange(places) * states, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.table is None:
            return torch.zeros(*x.shape[:-1], self.width)
        return self.table(x + self.offsets).sum(-2)


class _AttentionLayer(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.joint = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.alone = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.SiLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.joint(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(attended)
        return x + self.alone(x)
