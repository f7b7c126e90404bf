"""LLaDA2.x (https://github.com/inclusionAI/LLaDA2.X): blocks that are causal, and experts behind the first layers."""

from __future__ import annotations

from dataclasses import replace

from retouch.bundle import DecoderSpec, ExpertsSpec
from retouch.models.decoders._adapter import Config, DecoderAdapter, check_config
from retouch.models.decoders.code_lm import CODE_LM

__all__ = ["LLADA2_MOE"]

_MLP = "model.layers.{layer}.mlp"
_BLOCK, _MASK_ID = 32, 156895
"""Arguments of the remote code's ``generate``, which configurations do not hold."""
_EXPECTED = {
    "hidden_act": "silu",
    "use_bias": False,
    "use_qk_norm": True,
    "score_function": "sigmoid",
    "norm_topk_prob": True,
    "moe_router_enable_expert_bias": True,
    "rope_scaling": None,
}


def _spec(config: Config) -> DecoderSpec:
    check_config(config, _EXPECTED, "LLaDA2")
    usual = {
        "mask_token_id": _MASK_ID,
        "block_length": _BLOCK,
        "eos_token_id": config.get("pad_token_id"),
        "partial_rotary_factor": 1.0,
    }
    return replace(
        CODE_LM.spec({**usual, **config}),
        biases=bool(config.get("use_qkv_bias", False)),
        experts=ExpertsSpec(
            count=config["num_experts"],
            used=config["num_experts_per_tok"],
            groups=config["n_group"],
            groups_used=config["topk_group"],
            width=config["moe_intermediate_size"],
            shared_width=config["moe_intermediate_size"] * (config.get("num_shared_experts") or 0),
            dense_layers=config["first_k_dense_replace"],
            scale=float(config["routed_scaling_factor"]),
        ),
    )


LLADA2_MOE = DecoderAdapter(
    model_type="llada2_moe",
    spec=_spec,
    weights={
        **CODE_LM.weights,
        "qkv_bias": ("model.layers.{layer}.attention.query_key_value.bias",),
        "router": (f"{_MLP}.gate.weight",),
        "router_bias": (f"{_MLP}.gate.expert_bias",),
        "expert_gate": (f"{_MLP}.experts.{{expert}}.gate_proj.weight",),
        "expert_up": (f"{_MLP}.experts.{{expert}}.up_proj.weight",),
        "expert_down": (f"{_MLP}.experts.{{expert}}.down_proj.weight",),
        "shared_gate": (f"{_MLP}.shared_experts.gate_proj.weight",),
        "shared_up": (f"{_MLP}.shared_experts.up_proj.weight",),
        "shared_down": (f"{_MLP}.shared_experts.down_proj.weight",),
    },
    tied=lambda config: bool(config.get("tie_word_embeddings", False)),
)
