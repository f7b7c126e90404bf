"""The shape of a language model and its tokenizer, as the manifest of a text bundle describes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExpertsSpec:
    """Feed-forward parts of which every token uses a few (LLaDA2.x: sigmoid scores, limited to groups).

    Attributes:
        count: experts of a layer.
        used: experts that a token uses.
        groups: groups that the experts are in, one behind the other.
        groups_used: groups that a token's experts may come from.
        width: width inside an expert.
        shared_width: width of the part that all tokens use; 0 where there is none.
        dense_layers: so many layers, the first ones, have no experts.
        scale: what the weights of a token's experts sum up to.
    """

    count: int
    used: int
    groups: int
    groups_used: int
    width: int
    shared_width: int
    dense_layers: int
    scale: float


@dataclass(frozen=True)
class DecoderSpec:
    """The shape of a diffusion language model.

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
        block_causal: whether tokens see their own and earlier blocks only; otherwise all tokens see each other.
        head_norms: whether queries and keys are normed.
        biases: whether queries, keys and values have biases.
        shift: the token at a position is predicted so many positions before it.
        experts: experts of the feed-forward parts, if there are any.
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
    block_causal: bool = True
    head_norms: bool = True
    biases: bool = False
    shift: int = 0
    experts: ExpertsSpec | None = None

    def cache_shape(self, rows: int, texts: int = 1) -> tuple[int, int, int, int]:
        """The shape of the keys, and of the values, of one layer for so many tokens of each text."""
        return (texts, self.kv_heads, rows, self.head_dim)

    def has_experts(self, layer: int) -> bool:
        """Whether a layer's feed-forward part consists of experts."""
        return self.experts is not None and layer >= self.experts.dense_layers


@dataclass(frozen=True)
class SymbolsSpec:
    """A tokenizer whose ids are the places of symbols in a list.

    Attributes:
        symbols: the symbols; the end and the mask come behind them.
    """

    symbols: tuple[str, ...]
