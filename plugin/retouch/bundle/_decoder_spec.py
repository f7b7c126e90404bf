"""The shape of a language model and its tokenizer, as the manifest of a text bundle describes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DecoderSpec:
    """The shape of a block-diffusion language model.

    Attributes:
        family: name of the model's family.
        vocabulary: number of token ids.
        mask_id: id of a token that is still to be chosen.
        eos_id: id that ends a text.
        block: tokens of a block.
        positions: longest text.
        hidden: width.
        layers: number of layers.
        heads: heads of the queries.
        kv_heads: heads of keys and values.
        head_dim: width of a head.
        intermediate: width inside the feed-forward part.
        rotary_dims: how many dims of a head are rotated.
        rope_theta: base of the rotary frequencies.
        norm_epsilon: added to the mean square in norms.
    """

    family: str
    vocabulary: int
    mask_id: int
    eos_id: int
    block: int
    positions: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    rotary_dims: int
    rope_theta: float
    norm_epsilon: float

    def cache_shape(self, rows: int, texts: int = 1) -> tuple[int, int, int, int]:
        """The shape of the keys, and of the values, of one layer for so many tokens of each text."""
        return (texts, self.kv_heads, rows, self.head_dim)


@dataclass(frozen=True)
class SymbolsSpec:
    """A tokenizer whose ids are the places of symbols in a list.

    Attributes:
        symbols: the symbols; the end and the mask come behind them.
    """

    symbols: tuple[str, ...]
