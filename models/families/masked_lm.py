"""Masked language models: every position attends to every other one, and tokens are filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retouch.models._adapter import Adapter, Outputs, named
from retouch.models._input import Config, Input, Sizes, condition, editable

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["MASKED_LM", "MASKED_LM_OFFSET"]

_TOKENS = 128
_MODELS = (
    "transformers.BertForMaskedLM",
    "transformers.DistilBertForMaskedLM",
    "transformers.ModernBertForMaskedLM",
)


def _inputs(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    return _sequence(config, sizes, config["max_position_embeddings"])


def _sequence(config: Config, sizes: Sizes, longest: int) -> tuple[Input, ...]:
    shape = (sizes.batch, sizes.tokens or min(_TOKENS, longest))
    return (
        editable("input_ids", shape, (1,), below=config["vocab_size"]),
        condition("attention_mask", shape, dtype="int64", fill=1),
    )


def _offset(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    return _sequence(config, sizes, config["max_position_embeddings"] - config["pad_token_id"] - 1)


def _numbered(module: Module, *, input_ids: Tensor, attention_mask: Tensor) -> Outputs:
    """RoBERTa numbers the tokens that are not padding, behind the padding's own number.

    It counts those of ``input_ids``, which edits change; the mask says the same, and stays.
    """
    padding: int = module.config.pad_token_id  # type: ignore[union-attr, assignment]
    positions = attention_mask.cumsum(1) * attention_mask + padding
    ids = {"input_ids": input_ids, "attention_mask": attention_mask, "position_ids": positions}
    return {"logits": module(**ids, return_dict=False)[0]}


MASKED_LM = Adapter("masked_lm", _MODELS, _inputs, named("logits"))
MASKED_LM_OFFSET = Adapter("masked_lm", ("transformers.RobertaForMaskedLM",), _offset, _numbered)
