"""Networks with random weights to measure speed with: what weights are does not matter to the time of a read."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from retouch.models.code_lm import CodeLmConfig, save_code_lm
from retouch.tokens import code_characters

__all__ = ["Shape", "random_network"]


class Shape(Enum):
    """The shape of a network."""

    CODE = "code"
    """The default of :mod:`retouch.models.code_lm`: 3 million weights."""
    LLADA = "llada-30m"
    """LLaDA's proportions in small: as many heads of keys and values as of queries, a feed-forward part three times as
    wide, blocks of 32; 31 million weights."""


_CONFIGS: Mapping[Shape, CodeLmConfig] = {
    Shape.CODE: CodeLmConfig(),
    Shape.LLADA: CodeLmConfig(
        hidden_size=512,
        num_hidden_layers=9,
        num_attention_heads=8,
        num_key_value_heads=8,
        intermediate_size=1536,
        block_length=32,
    ),
}


def random_network(shape: Shape, folder: Path) -> Path:
    """The directory, in which a network of that shape was saved."""
    import torch

    from retouch.models.code_lm._network import CodeLm

    torch.manual_seed(0)
    save_code_lm(CodeLm(_CONFIGS[shape]), code_characters(), folder, half=False)
    return folder
