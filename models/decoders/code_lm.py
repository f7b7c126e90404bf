"""The language model of :mod:`retouch.models.code_lm`; dense models with LLaDA2's names are alike."""

from __future__ import annotations

from retouch.bundle import DecoderSpec
from retouch.models.decoders._adapter import Config, DecoderAdapter

__all__ = ["CODE_LM"]

_LAYER = "model.layers.{layer}"


def _spec(config: Config) -> DecoderSpec:
    return DecoderSpec(
        family=config["model_type"],
        vocabulary=config["vocab_size"],
        mask_id=config["mask_token_id"],
        eos_id=config["eos_token_id"],
        block=config["block_length"],
        positions=config["max_position_embeddings"],
        hidden=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        intermediate=config["intermediate_size"],
        rotary_dims=int(config["head_dim"] * config["partial_rotary_factor"]),
        rope_theta=float(config["rope_theta"]),
        norm_epsilon=float(config["rms_norm_eps"]),
    )


CODE_LM = DecoderAdapter(
    model_type="retouch_code_lm",
    spec=_spec,
    weights={
        "embedding": ("model.word_embeddings.weight",),
        "head": ("lm_head.weight",),
        "norm": ("model.norm.weight",),
        "attention_norm": (f"{_LAYER}.input_layernorm.weight",),
        "qkv": (f"{_LAYER}.attention.query_key_value.weight",),
        "query_norm": (f"{_LAYER}.attention.query_layernorm.weight",),
        "key_norm": (f"{_LAYER}.attention.key_layernorm.weight",),
        "output": (f"{_LAYER}.attention.dense.weight",),
        "feed_forward_norm": (f"{_LAYER}.post_attention_layernorm.weight",),
        "gate": (f"{_LAYER}.mlp.gate_proj.weight",),
        "up": (f"{_LAYER}.mlp.up_proj.weight",),
        "down": (f"{_LAYER}.mlp.down_proj.weight",),
    },
    tied=lambda config: bool(config["tie_word_embeddings"]),
)
