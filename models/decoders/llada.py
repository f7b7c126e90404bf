"""LLaDA (https://github.com/ML-GSAI/LLaDA): full attention, plain heads, tensors named as OLMo's."""

from __future__ import annotations

from retouch.bundle import DecoderSpec
from retouch.models.decoders._adapter import Config, DecoderAdapter, check_config

__all__ = ["LLADA"]

_LAYER = "model.transformer.blocks.{layer}"
_BLOCK = 32
"""What a text is filled in by unless a sampler is told otherwise; the model has no blocks."""
_EXPECTED = {
    "block_type": "llama",
    "layer_norm_type": "rms",
    "activation_type": "silu",
    "include_bias": False,
    "include_qkv_bias": False,
    "attention_layer_norm": False,
    "rope": True,
}


def _spec(config: Config) -> DecoderSpec:
    check_config(config, _EXPECTED, "LLaDA")
    return DecoderSpec(
        family=config["model_type"],
        vocabulary=config.get("embedding_size") or config["vocab_size"],
        mask_id=config["mask_token_id"],
        eos_id=config["eos_token_id"],
        block=_BLOCK,
        positions=config["max_sequence_length"],
        hidden=config["d_model"],
        layers=config["n_layers"],
        heads=config["n_heads"],
        kv_heads=config.get("n_kv_heads") or config["n_heads"],
        head_dim=config["d_model"] // config["n_heads"],
        intermediate=config["mlp_hidden_size"],
        rotary_dims=config["d_model"] // config["n_heads"],
        rope_theta=float(config["rope_theta"]),
        norm_epsilon=float(config["rms_norm_eps"]),
        block_causal=False,
        head_norms=False,
    )


LLADA = DecoderAdapter(
    model_type="llada",
    spec=_spec,
    weights={
        "embedding": ("model.transformer.wte.weight",),
        "head": ("model.transformer.ff_out.weight",),
        "norm": ("model.transformer.ln_f.weight",),
        "attention_norm": (f"{_LAYER}.attn_norm.weight",),
        "qkv": tuple(f"{_LAYER}.{part}_proj.weight" for part in "qkv"),
        "output": (f"{_LAYER}.attn_out.weight",),
        "feed_forward_norm": (f"{_LAYER}.ff_norm.weight",),
        "gate": (f"{_LAYER}.ff_proj.weight",),
        "up": (f"{_LAYER}.up_proj.weight",),
        "down": (f"{_LAYER}.ff_out.weight",),
    },
    tied=lambda config: bool(config["weight_tying"]),
)
