"""Families of language models with random weights, and what torch computes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

Config = dict[str, Any]
Weights = dict[str, Tensor]
VOCABULARY, WIDTH, HEADS, KV_HEADS, HEAD_DIM, LAYERS = 40, 32, 4, 2, 8, 2

LLADA: Config = {
    "model_type": "llada",
    "d_model": WIDTH,
    "n_layers": LAYERS,
    "n_heads": HEADS,
    "n_kv_heads": KV_HEADS,
    "mlp_hidden_size": 48,
    "embedding_size": VOCABULARY,
    "vocab_size": VOCABULARY,
    "max_sequence_length": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "mask_token_id": 39,
    "eos_token_id": 38,
    "weight_tying": False,
    "block_type": "llama",
}
DREAM: Config = {
    "model_type": "Dream",
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "intermediate_size": 48,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "mask_token_id": 39,
    "eos_token_id": 38,
    "tie_word_embeddings": False,
}
LLADA2: Config = {
    "model_type": "llada2_moe",
    "hidden_size": WIDTH,
    "num_hidden_layers": 3,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": 16,
    "intermediate_size": 48,
    "moe_intermediate_size": 12,
    "num_experts": 16,
    "num_experts_per_tok": 3,
    "n_group": 4,
    "topk_group": 2,
    "num_shared_experts": 1,
    "first_k_dense_replace": 1,
    "routed_scaling_factor": 2.5,
    "partial_rotary_factor": 0.5,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "rope_theta": 600000,
    "pad_token_id": 38,
    "mask_token_id": 39,
    "block_length": 8,
    "tie_word_embeddings": False,
}


def _llada_shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.transformer.wte.weight": (VOCABULARY, WIDTH),
        "model.transformer.ff_out.weight": (VOCABULARY, WIDTH),
        "model.transformer.ln_f.weight": (WIDTH,),
    }
    for layer in range(LAYERS):
        name = f"model.transformer.blocks.{layer}"
        sizes = {"q_proj": WIDTH, "k_proj": KV_HEADS * HEAD_DIM, "v_proj": KV_HEADS * HEAD_DIM, "attn_out": WIDTH}
        shapes |= {f"{name}.{part}.weight": (size, WIDTH) for part, size in sizes.items()}
        shapes |= {f"{name}.{part}.weight": (48, WIDTH) for part in ("ff_proj", "up_proj")}
        shapes |= {f"{name}.ff_out.weight": (WIDTH, 48)}
        shapes |= {f"{name}.{part}.weight": (WIDTH,) for part in ("attn_norm", "ff_norm")}
    return shapes


def _dream_shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (VOCABULARY, WIDTH),
        "lm_head.weight": (VOCABULARY, WIDTH),
        "model.norm.weight": (WIDTH,),
    }
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        for part, size in {"q": WIDTH, "k": KV_HEADS * HEAD_DIM, "v": KV_HEADS * HEAD_DIM}.items():
            shapes[f"{name}.self_attn.{part}_proj.weight"] = (size, WIDTH)
            shapes[f"{name}.self_attn.{part}_proj.bias"] = (size,)
        shapes[f"{name}.self_attn.o_proj.weight"] = (WIDTH, WIDTH)
        shapes |= {f"{name}.mlp.{part}_proj.weight": (48, WIDTH) for part in ("gate", "up")}
        shapes[f"{name}.mlp.down_proj.weight"] = (WIDTH, 48)
        shapes |= {f"{name}.{part}_layernorm.weight": (WIDTH,) for part in ("input", "post_attention")}
    return shapes


def _llada2_shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.word_embeddings.weight": (VOCABULARY, WIDTH),
        "lm_head.weight": (VOCABULARY, WIDTH),
        "model.norm.weight": (WIDTH,),
    }
    for layer in range(3):
        name = f"model.layers.{layer}"
        shapes[f"{name}.attention.query_key_value.weight"] = ((HEADS + 2 * KV_HEADS) * 16, WIDTH)
        shapes[f"{name}.attention.dense.weight"] = (WIDTH, HEADS * 16)
        shapes |= {f"{name}.attention.{part}_layernorm.weight": (16,) for part in ("query", "key")}
        shapes |= {f"{name}.{part}_layernorm.weight": (WIDTH,) for part in ("input", "post_attention")}
        parts = (
            {"mlp.": 48} if layer == 0 else {f"mlp.experts.{n}.": 12 for n in range(16)} | {"mlp.shared_experts.": 12}
        )
        for part, width in parts.items():
            shapes |= {f"{name}.{part}{half}_proj.weight": (width, WIDTH) for half in ("gate", "up")}
            shapes[f"{name}.{part}down_proj.weight"] = (WIDTH, width)
        if layer:
            shapes[f"{name}.mlp.gate.weight"] = (16, WIDTH)
            shapes[f"{name}.mlp.gate.expert_bias"] = (16,)
    return shapes


def _norm(x: Tensor, weight: Tensor, config: Config) -> Tensor:
    return functional.rms_norm(x, x.shape[-1:], weight, config["rms_norm_eps"])


def _rotated(x: Tensor, config: Config) -> Tensor:
    """Rotary positions in the form of transformers: cosines and sines of both halves, halves swapped."""
    dims = int(x.shape[-1] * config.get("partial_rotary_factor", 1))
    inverse = 1 / config["rope_theta"] ** (torch.arange(0, dims, 2) / dims)
    angle = torch.outer(torch.arange(x.shape[-2]), inverse).repeat(1, 2)
    turned, rest = x[..., :dims], x[..., dims:]
    first, second = turned.chunk(2, -1)
    return torch.cat((turned * angle.cos() + torch.cat((-second, first), -1) * angle.sin(), rest), -1)


def _attention(query: Tensor, key: Tensor, value: Tensor, config: Config, mask: Tensor | None) -> Tensor:
    query, key = _rotated(query, config), _rotated(key, config)
    mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
    return mixed.transpose(0, 1).flatten(1)


def _heads(x: Tensor, count: int) -> Tensor:
    return x.unflatten(-1, (count, -1)).transpose(0, 1)


def _llada(w: Weights, config: Config, ids: Tensor) -> Tensor:
    x = w["model.transformer.wte.weight"][ids]
    for layer in range(config["n_layers"]):
        own = {name.split(f"blocks.{layer}.")[1]: t for name, t in w.items() if f"blocks.{layer}." in name}
        h = _norm(x, own["attn_norm.weight"], config)
        q, k, v = (
            _heads(h @ own[f"{p}_proj.weight"].T, n) for p, n in zip("qkv", (HEADS, KV_HEADS, KV_HEADS), strict=True)
        )
        x = x + _attention(q, k, v, config, None) @ own["attn_out.weight"].T
        h = _norm(x, own["ff_norm.weight"], config)
        x = x + (functional.silu(h @ own["ff_proj.weight"].T) * (h @ own["up_proj.weight"].T)) @ own["ff_out.weight"].T
    return _norm(x, w["model.transformer.ln_f.weight"], config) @ w["model.transformer.ff_out.weight"].T


def _dream(w: Weights, config: Config, ids: Tensor) -> Tensor:
    x = w["model.embed_tokens.weight"][ids]
    for layer in range(config["num_hidden_layers"]):
        own = {name.split(f"layers.{layer}.")[1]: t for name, t in w.items() if f"layers.{layer}." in name}
        h = _norm(x, own["input_layernorm.weight"], config)
        q, k, v = (
            _heads(functional.linear(h, own[f"self_attn.{p}_proj.weight"], own[f"self_attn.{p}_proj.bias"]), n)
            for p, n in zip("qkv", (HEADS, KV_HEADS, KV_HEADS), strict=True)
        )
        x = x + _attention(q, k, v, config, None) @ own["self_attn.o_proj.weight"].T
        x = x + _swiglu(own, "mlp.", _norm(x, own["post_attention_layernorm.weight"], config))
    return _norm(x, w["model.norm.weight"], config) @ w["lm_head.weight"].T


def _swiglu(own: Weights, part: str, h: Tensor) -> Tensor:
    gate, up, down = (own[f"{part}{half}_proj.weight"] for half in ("gate", "up", "down"))
    return (functional.silu(h @ gate.T) * (h @ up.T)) @ down.T


def _llada2(w: Weights, config: Config, ids: Tensor) -> Tensor:
    positions, size = torch.arange(len(ids)), config["block_length"]
    mask = (positions // size)[:, None] >= (positions // size)[None]
    x = w["model.word_embeddings.weight"][ids]
    for layer in range(config["num_hidden_layers"]):
        own = {name.split(f"layers.{layer}.")[1]: t for name, t in w.items() if f"layers.{layer}." in name}
        h = _norm(x, own["input_layernorm.weight"], config)
        packed = _heads(h @ own["attention.query_key_value.weight"].T, HEADS + 2 * KV_HEADS)
        q, k, v = packed.split((HEADS, KV_HEADS, KV_HEADS))
        q = _norm(q, own["attention.query_layernorm.weight"], config)
        k = _norm(k, own["attention.key_layernorm.weight"], config)
        x = x + _attention(q, k, v, config, mask) @ own["attention.dense.weight"].T
        h = _norm(x, own["post_attention_layernorm.weight"], config)
        x = x + (_mixture(own, config, h) if layer >= config["first_k_dense_replace"] else _swiglu(own, "mlp.", h))
    return _norm(x, w["model.norm.weight"], config) @ w["lm_head.weight"].T


def _mixture(own: Weights, config: Config, h: Tensor) -> Tensor:
    """The router of LLaDA2's remote code, token by token."""
    groups = config["n_group"]
    result = []
    for token in h:
        scores = torch.sigmoid(own["mlp.gate.weight"] @ token)
        biased = (scores + own["mlp.gate.expert_bias"]).view(groups, -1)
        open_groups = biased.topk(2, -1)[0].sum(-1).topk(config["topk_group"])[1]
        allowed = torch.full_like(biased, -torch.inf)
        allowed[open_groups] = biased[open_groups]
        chosen = allowed.flatten().topk(config["num_experts_per_tok"])[1]
        shares = scores[chosen] / scores[chosen].sum() * config["routed_scaling_factor"]
        routed = sum(share * _swiglu(own, f"mlp.experts.{n}.", token) for n, share in zip(chosen, shares, strict=True))
        result.append(routed + _swiglu(own, "mlp.shared_experts.", token))
    return torch.stack(result)


@dataclass(frozen=True)
class Family:
    config: Config
    shapes: Callable[[], dict[str, tuple[int, ...]]]
    logits: Callable[[Weights, Config, Tensor], Tensor]


FAMILIES = {
    "llada": Family(LLADA, _llada_shapes, _llada),
    "dream": Family(DREAM, _dream_shapes, _dream),
    "llada2_moe": Family(LLADA2, _llada2_shapes, _llada2),
}


def saved(family: Family, folder: Path, shards: int = 3) -> Weights:
    """Random weights in bfloat16, as released ones are, spread over shards."""
    torch.manual_seed(0)
    weights: Weights = {}
    for name, shape in family.shapes().items():
        centre = 1.0 if len(shape) == 1 and not name.endswith("bias") else 0.0
        weights[name] = (centre + 0.3 * torch.randn(shape)).to(torch.bfloat16)
    folder.mkdir()
    places = {name: f"model-{index % shards}.safetensors" for index, name in enumerate(weights)}
    for shard in set(places.values()):
        save_file({name: weights[name] for name in weights if places[name] == shard}, folder / shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (folder / "config.json").write_text(json.dumps(family.config))
    return {name: tensor.float() for name, tensor in weights.items()}
