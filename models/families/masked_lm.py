"""Masked language models: every position attends to every other one, and tokens are filled in."""

from __future__ import annotations

from retouch.models._adapter import Adapter, named
from retouch.models._input import Config, Input, Sizes, condition, editable

__all__ = ["MASKED_LM"]

_TOKENS = 128
_MODELS = (
    "transformers.BertForMaskedLM",
    "transformers.DistilBertForMaskedLM",
    "transformers.ModernBertForMaskedLM",
)


def _inputs(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    shape = (sizes.batch, sizes.tokens or min(_TOKENS, config["max_position_embeddings"]))
    return (
        editable("input_ids", shape, (1,), below=config["vocab_size"]),
        condition("attention_mask", shape, dtype="int64", fill=1),
    )


MASKED_LM = Adapter("masked_lm", _MODELS, _inputs, named("logits"))
