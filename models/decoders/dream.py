"""Dream (https://github.com/HKUNLP/Dream): Qwen2's layer with full attention, which predicts the token that follows."""

from __future__ import annotations

from dataclasses import replace

from retouch.bundle import DecoderSpec
from retouch.models.decoders._adapter import Config, DecoderAdapter, check_config
from retouch.models.decoders.code_lm import CODE_LM

__all__ = ["DREAM"]

_LAYER = "model.layers.{layer}"
_BLOCK = 32
"""What a text is filled in by unless a sampler is told otherwise; the model has no blocks."""
_EXPECTED = {"hidden_act": "silu", "use_mrope": False, "use_sliding_window": False, "rope_scaling": None}


def _spec(config: Config) -> DecoderSpec:
    check_config(config, _EXPECTED, "Dream")
    usual = {
        "block_length": _BLOCK,
        "head_dim": config["hidden_size"] // config["num_attention_heads"],
        "partial_rotary_factor": 1.0,
    }
    return replace(CODE_LM.spec({**config, **usual}), block_causal=False, head_norms=False, biases=True, shift=1)


DREAM = DecoderAdapter(
    model_type="Dream",
    spec=_spec,
    weights={
        "embedding": ("model.embed_tokens.weight",),
        "head": ("lm_head.weight",),
        "norm": ("model.norm.weight",),
        "attention_norm": (f"{_LAYER}.input_layernorm.weight",),
        "qkv": tuple(f"{_LAYER}.self_attn.{part}_proj.weight" for part in "qkv"),
        "qkv_bias": tuple(f"{_LAYER}.self_attn.{part}_proj.bias" for part in "qkv"),
        "output": (f"{_LAYER}.self_attn.o_proj.weight",),
        "feed_forward_norm": (f"{_LAYER}.post_attention_layernorm.weight",),
        "gate": (f"{_LAYER}.mlp.gate_proj.weight",),
        "up": (f"{_LAYER}.mlp.up_proj.weight",),
        "down": (f"{_LAYER}.mlp.down_proj.weight",),
    },
    tied=lambda config: bool(config["tie_word_embeddings"]),
)
