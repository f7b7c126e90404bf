"""The network, in torch. Names of its weights are LLaDA2's."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from retouch.models.code_lm._config import CodeLmConfig

__all__ = ["Attend", "CodeLm", "KeyValues", "block_mask"]

KeyValues = tuple[Tensor, Tensor]
"""Keys and values of a layer, [B, kv_heads, N, head_dim] each."""

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Attention of queries [B, heads, Q, head_dim] over keys and values [B, kv_heads, N, head_dim]; the queries' shape."""

_STD = 0.02


def block_mask(queries: Tensor, keys: Tensor, block: int) -> Tensor:
    """Which of the key positions [K] every query position [Q] sees, [Q, K]: those of its own block and of earlier ones.

    A block as long as the text gives full attention.
    """
    return (queries // block)[:, None] >= (keys // block)[None]


class CodeLm(nn.Module):
    """Predicts the token at every position from all tokens it sees, itself included; it is told no time.

    The layer is that of LLaDA2.x (https://github.com/inclusionAI/LLaDA2.X) without experts: RMSNorm, packed queries,
    keys and values, RMSNorm per head before rotation, SwiGLU.
    """

    def __init__(self, config: CodeLmConfig) -> None:
        super().__init__()
        self.config = config
        self.model = _Trunk(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.word_embeddings.weight
        self.apply(lambda module: _initialise(module, config))

    def forward(
        self,
        ids: Tensor,
        positions: Tensor,
        mask: Tensor | Attend | None = None,
        past: list[KeyValues] | None = None,
        *,
        logits_of: int | None = None,
    ) -> tuple[Tensor, list[KeyValues]]:
        """Logits [B, Q, vocab] and the keys and values of all tokens so far.

        Args:
            ids: tokens [B, Q].
            positions: their positions [Q].
            mask: what every token sees of past and present ones [Q, K], or what attends instead; ``None`` means
                everything.
            past: keys and values of earlier tokens, per layer.
            logits_of: how many tokens, the first ones, get logits; ``None`` means all.
        """
        hidden, kept = self.model(ids, positions, mask, past)
        logits: Tensor = self.lm_head(hidden[:, :logits_of])
        return logits, kept


class _Trunk(nn.Module):
    cos: Tensor
    sin: Tensor

    def __init__(self, config: CodeLmConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = _RmsNorm(config.hidden_size, config.rms_norm_eps)
        steps = torch.arange(0, config.rotary_dims, 2, dtype=torch.float64) / config.rotary_dims
        angles = torch.arange(config.max_position_embeddings, dtype=torch.float64)[:, None] * config.rope_theta**-steps
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def forward(
        self, ids: Tensor, positions: Tensor, mask: Tensor | Attend | None, past: list[KeyValues] | None
    ) -> tuple[Tensor, list[KeyValues]]:
        hidden = self.word_embeddings(ids)
        rotation = self.cos[positions], self.sin[positions]
        kept = []
        for index, layer in enumerate(self.layers):
            hidden, keys_values = layer(hidden, rotation, mask, None if past is None else past[index])
            kept.append(keys_values)
        return self.norm(hidden), kept


class _RmsNorm(nn.Module):
    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self._epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self._epsilon)


class _Layer(nn.Module):
    def __init__(self, config: CodeLmConfig) -> None:
        super().__init__()
        self.input_layernorm = _RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.attention = _Attention(config)
        self.post_attention_layernorm = _RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = _FeedForward(config)

    def forward(
        self, x: Tensor, rotation: tuple[Tensor, Tensor], mask: Tensor | Attend | None, past: KeyValues | None
    ) -> tuple[Tensor, KeyValues]:
        attended, kept = self.attention(self.input_layernorm(x), rotation, mask, past)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), kept


class _Attention(nn.Module):
    def __init__(self, config: CodeLmConfig) -> None:
        super().__init__()
        self._heads = config.num_attention_heads, config.num_key_value_heads
        self._head_dim = config.head_dim
        packed = (config.num_attention_heads + 2 * config.num_key_value_heads) * config.head_dim
        self.query_key_value = nn.Linear(config.hidden_size, packed, bias=False)
        self.query_layernorm = _RmsNorm(config.head_dim, config.rms_norm_eps)
        self.key_layernorm = _RmsNorm(config.head_dim, config.rms_norm_eps)
        self.dense = nn.Linear(config.num_attention_heads * config.head_dim, config.hidden_size, bias=False)

    def forward(
        self, x: Tensor, rotation: tuple[Tensor, Tensor], mask: Tensor | Attend | None, past: KeyValues | None
    ) -> tuple[Tensor, KeyValues]:
        heads, kv_heads = self._heads
        packed = self.query_key_value(x).unflatten(-1, (-1, self._head_dim)).transpose(1, 2)
        query, key, value = packed.split((heads, kv_heads, kv_heads), 1)
        query = _rotated(self.query_layernorm(query), rotation)
        key = _rotated(self.key_layernorm(key), rotation)
        if past is not None:
            key, value = torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
        mixed = mask(query, key, value) if callable(mask) else _attended(query, key, value, mask)
        return self.dense(mixed.transpose(1, 2).flatten(2)), (key, value)


def _attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    shared = query.shape[1] != key.shape[1]
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=shared)


class _FeedForward(nn.Module):
    def __init__(self, config: CodeLmConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        down: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return down


def _rotated(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """The first dims of every head, rotated in pairs (d, d + half); the others as they are."""
    cos, sin = (part.to(x.dtype) for part in rotation)
    half = cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), -1)


def _initialise(module: nn.Module, config: CodeLmConfig) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        into_residual = isinstance(module, nn.Linear) and module.out_features == config.hidden_size
        depth = math.sqrt(2 * config.num_hidden_layers) if into_residual else 1.0
        nn.init.normal_(module.weight, std=_STD / depth)
