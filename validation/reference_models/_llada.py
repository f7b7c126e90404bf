"""A LLaDA-style masked language model: a bidirectional transformer over token ids."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from retouch.validation.reference_models._model import BuiltModel, Configuration

ROTATION_BASE = 10_000.0
NORM_EPSILON = 1e-5


@dataclass(frozen=True)
class LladaShape:
    """The sizes of the model; ``tokens`` is the length it is exported for."""

    vocabulary: int
    width: int
    hidden: int
    heads: int
    layers: int
    tokens: int


class RmsNorm(nn.Module):
    """Scales the channels of every token to unit root mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, tokens: Tensor) -> Tensor:
        """The normalised tokens."""
        mean_square = tokens.pow(2).mean(-1, keepdim=True)
        return tokens * torch.rsqrt(mean_square + NORM_EPSILON) * self.weight


class RotaryAttention(nn.Module):
    """Attention of every token to every token, with rotary position embedding."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, tokens: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """The attended tokens, [batch, tokens, width]."""
        query = _rotate(self._split_heads(self.query(tokens)), cosine, sine)
        key = _rotate(self._split_heads(self.key(tokens)), cosine, sine)
        value = self._split_heads(self.value(tokens))
        attended = functional.scaled_dot_product_attention(query, key, value)
        return self.output(attended.transpose(1, 2).reshape(tokens.shape))  # type: ignore[no-any-return]

    def _split_heads(self, tokens: Tensor) -> Tensor:
        batch, count, width = tokens.shape
        return tokens.view(batch, count, self.heads, width // self.heads).transpose(1, 2)


class SwiGlu(nn.Module):
    """The gated feed-forward part of a layer."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """The transformed tokens."""
        return self.down(functional.silu(self.gate(tokens)) * self.up(tokens))  # type: ignore[no-any-return]


class LladaLayer(nn.Module):
    """Attention and feed-forward part, each behind a norm and added to its input."""

    def __init__(self, shape: LladaShape) -> None:
        super().__init__()
        self.attention_norm = RmsNorm(shape.width)
        self.attention = RotaryAttention(shape.width, shape.heads)
        self.feed_forward_norm = RmsNorm(shape.width)
        self.feed_forward = SwiGlu(shape.width, shape.hidden)

    def forward(self, tokens: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """The tokens after the layer."""
        tokens = tokens + self.attention(self.attention_norm(tokens), cosine, sine)
        return tokens + self.feed_forward(self.feed_forward_norm(tokens))  # type: ignore[no-any-return]


class Llada(nn.Module):
    """Logits over the vocabulary for every position of a sequence of token ids."""

    frequencies: Tensor

    def __init__(self, shape: LladaShape) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(LladaLayer(shape) for _ in range(shape.layers))
        self.norm = RmsNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        head_width = shape.width // shape.heads
        exponents = torch.arange(0, head_width, 2) / head_width
        self.register_buffer("frequencies", ROTATION_BASE**-exponents)

    def forward(self, ids: Tensor) -> Tensor:
        """The logits, [batch, tokens, vocabulary]."""
        positions = torch.arange(ids.shape[1], dtype=torch.float32, device=ids.device)
        half = torch.outer(positions, self.frequencies)
        angles = torch.cat([half, half], dim=-1)
        cosine, sine = angles.cos(), angles.sin()
        tokens = self.embedding(ids)
        for layer in self.layers:
            tokens = layer(tokens, cosine, sine)
        return self.head(self.norm(tokens))  # type: ignore[no-any-return]


def llada(configuration: Configuration) -> BuiltModel:
    """The language model and random token ids."""
    shape = LladaShape(**configuration)  # type: ignore[arg-type]
    ids = torch.randint(0, shape.vocabulary, (1, shape.tokens))
    return BuiltModel(Llada(shape), {"ids": ids})


def _rotate(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary position embedding of [batch, heads, tokens, channels], pairing the two halves of the channels."""
    middle = heads.shape[-1] // 2
    turned = torch.cat([-heads[..., middle:], heads[..., :middle]], dim=-1)
    return heads * cosine + turned * sine
