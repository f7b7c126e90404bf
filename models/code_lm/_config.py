"""The shape of the network."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from retouch.errors import ModelError

__all__ = ["CodeLmConfig"]

MODEL_TYPE = "retouch_code_lm"


@dataclass(frozen=True)
class CodeLmConfig:
    """A block-diffusion language model: LLaDA2's layer without its mixture of experts.

    Attributes:
        vocab_size: number of token ids.
        mask_token_id: id of the mask.
        eos_token_id: id that ends a text.
        hidden_size: width.
        num_hidden_layers: layers.
        num_attention_heads: heads of the queries.
        num_key_value_heads: heads of keys and values; each serves an equal share of the queries' heads.
        head_dim: width of a head.
        intermediate_size: width inside the feed-forward part.
        block_length: tokens of a block; inside a block attention looks both ways, across blocks backwards only.
        max_position_embeddings: longest text.
        rope_theta: base of the rotary frequencies.
        partial_rotary_factor: share of a head that is rotated.
        rms_norm_eps: added to the mean square in norms.
        tie_word_embeddings: whether the output layer is the embedding's transpose.
    """

    vocab_size: int = 99
    mask_token_id: int = 98
    eos_token_id: int = 97
    hidden_size: int = 256
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    intermediate_size: int = 704
    block_length: int = 16
    max_position_embeddings: int = 2048
    rope_theta: float = 10_000.0
    partial_rotary_factor: float = 1.0
    rms_norm_eps: float = 1e-5
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        """Checks that heads and rotated dims come out even.

        Raises:
            ModelError: they do not.
        """
        if self.num_attention_heads % self.num_key_value_heads:
            raise ModelError(
                f"Expected the {self.num_attention_heads} query heads to share the {self.num_key_value_heads} heads of "
                "keys and values evenly. Choose numbers of which one divides the other."
            )
        if self.rotary_dims % 2 or not 0 < self.rotary_dims <= self.head_dim:
            raise ModelError(
                f"Expected an even number of rotated dims up to {self.head_dim}, got {self.rotary_dims}. Change "
                "partial_rotary_factor."
            )

    @property
    def rotary_dims(self) -> int:
        """How many dims of a head are rotated."""
        return int(self.head_dim * self.partial_rotary_factor)

    def to_dict(self) -> dict[str, Any]:
        """What ``config.json`` holds."""
        return {"model_type": MODEL_TYPE, **dataclasses.asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CodeLmConfig:
        """The configuration in a ``config.json``.

        Raises:
            ModelError: it is of another model, or lacks a member.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        missing = sorted(names - set(data))
        if data.get("model_type") != MODEL_TYPE or missing:
            raise ModelError(
                f"Expected the config.json of a {MODEL_TYPE} with all its members, got model_type "
                f"{data.get('model_type')!r}, without {', '.join(missing) or 'nothing missing'}. Save the model again."
            )
        return cls(**{name: data[name] for name in names})
