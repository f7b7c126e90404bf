"""Encoders of prompts. They are exported whole: a text condition is computed once and has no editable positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from retouch.models._adapter import Adapter, Outputs
from retouch.models._input import Config, Input, Sizes, condition

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["CLIP_TEXT", "CLIP_TEXT_PROJECTED", "T5_ENCODER"]

_T5_TOKENS = 512


def _clip_ids(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    tokens = sizes.text or config["max_position_embeddings"]
    return (_ids(sizes.batch, tokens, config),)


def _t5_ids(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    return (_ids(sizes.batch, sizes.text or _T5_TOKENS, config),)


def _ids(batch: int, tokens: int, config: Config) -> Input:
    # Pipelines on ONNX Runtime feed 32 bits, or whatever the graph asks for.
    return condition("input_ids", (batch, tokens), dtype="int32", below=config["vocab_size"])


def _call(*names: str) -> Callable[..., Outputs]:
    def call(module: Module, **arguments: Any) -> Outputs:  # noqa: ANN401 (arguments may be anything)
        output = module(**arguments, output_hidden_states=True)
        layers = {f"hidden_states.{i}": layer for i, layer in enumerate(output.hidden_states[:-1])}
        return {**{name: getattr(output, name) for name in names}, **layers}

    return call


CLIP_TEXT = Adapter(
    "clip_text", ("transformers.CLIPTextModel",), _clip_ids, _call("last_hidden_state", "pooler_output")
)
CLIP_TEXT_PROJECTED = Adapter(
    "clip_text",
    ("transformers.CLIPTextModelWithProjection",),
    _clip_ids,
    _call("text_embeds", "last_hidden_state"),
)
T5_ENCODER = Adapter("t5_encoder", ("transformers.T5EncoderModel",), _t5_ids, _call("last_hidden_state"))
