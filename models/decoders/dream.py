"""Dream (https://github.com/HKUNLP/Dream): Qwen2's layer with full attention, which predicts the token that follows."""

from __future__ import annotations

from retouch.bundle import DecoderSpec
from retouch.errors import ModelError
from retouch.models.decoders._adapter import Config, DecoderAdapter

__all__ = ["DREAM"]

_LAYER = "model.layers.{layer}"
_BLOCK = 32
"""What a text is filled in by unless a sampler is told otherwise; the model has no blocks."""
_EXPECTED = {"hidden_act": "silu", "use_mrope": False, "use_sliding_window": False, "rope_scaling": None}


def _spec(config: Config) -> DecoderSpec:
    for key, wanted in _EXPECTED.items():
        if config.get(key, wanted) != wanted:
            raise ModelError(f"Expected a Dream model with {key} = {wanted!r}, got {config[key]!r}. Write an adapter.")
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    return DecoderSpec(
        family=config["model_type"],
        vocabulary=config["vocab_size"],
        mask_id=config["mask_token_id"],
        eos_id=config["eos_token_id"],
        block=_BLOCK,
        positions=config["max_position_embeddings"],
        hidden=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"],
        head_dim=head_dim,
        intermediate=config["intermediate_size"],
        rotary_dims=head_dim,
        rope_theta=float(config["rope_theta"]),
        norm_epsilon=float(config["rms_norm_eps"]),
        block_causal=False,
        head_norms=False,
        biases=True,
        shift=1,
    )


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
