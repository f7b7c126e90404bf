"""Families of language models against their layers written down in torch, from checkpoints of random weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from retouch import EditSession
from retouch.errors import ModelError
from retouch.models.decoders import _checkpoint as checkpoint
from retouch.models.decoders import decoder_for, export_language_model, export_text_edits
from retouch.text import TextModel

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


def _saved(family: Family, folder: Path, shards: int = 3) -> Weights:
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


@pytest.mark.parametrize("name", FAMILIES)
def test_exports_choose_the_tokens_that_torch_chooses(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    weights = _saved(family, tmp_path / "model")
    bundle = export_language_model(tmp_path / "model", tmp_path / "bundle")
    spec = bundle.manifest.model
    ids = np.random.default_rng(2).integers(0, VOCABULARY, 4 * 8)
    wanted = family.logits(weights, family.config, torch.from_numpy(ids)).numpy()
    model = TextModel(bundle, threads=1)
    got = model.uncached(len(ids), window=not spec.block_causal).read(ids, 0)
    np.testing.assert_allclose(got, wanted, atol=1e-4 * np.abs(wanted).max())
    assert got.argmax(-1).tolist() == wanted.argmax(-1).tolist()
    if spec.block_causal:
        cached = model.context(len(ids))
        parts = [cached.read(ids[start : start + spec.block], start) for start in range(0, len(ids), spec.block)]
        assert np.concatenate(parts).argmax(-1).tolist() == wanted.argmax(-1).tolist()


@pytest.mark.parametrize("name", ["llada", "dream"])
def test_edits_of_rows_are_exact_where_all_rows_are_computed(name: str, tmp_path: Path) -> None:
    family, tokens = FAMILIES[name], 24
    weights = _saved(family, tmp_path / "model", shards=1)
    bundle = export_text_edits(tmp_path / "model", tmp_path / "edits", tokens)
    ids = np.random.default_rng(3).integers(0, VOCABULARY, (1, tokens))
    changed = ids.copy()
    changed[0, 5:9] = 39
    with EditSession(bundle, threads=1) as session:
        run = session.base({"ids": ids})
        edited = session.edit(run, {"ids": changed}, region=np.ones(tokens, bool), fallback=False)
    wanted = family.logits(weights, family.config, torch.from_numpy(changed[0])).numpy()
    np.testing.assert_allclose(edited.outputs["logits"][0], wanted, atol=1e-4 * np.abs(wanted).max())


def test_no_more_than_one_weight_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a checkpoint with many tensors no two that were read are alive at once, but for those of one stack."""
    _saved(FAMILIES["llada2_moe"], tmp_path / "model")
    alive: WeakValueDictionary[int, np.ndarray] = WeakValueDictionary()
    most = 0
    read = checkpoint.Checkpoint.stacked

    def counted(self: checkpoint.Checkpoint, names: list[str]) -> np.ndarray:
        nonlocal most
        array = np.array(read(self, names))
        alive[id(array)] = array
        most = max(most, len(alive))
        return array

    monkeypatch.setattr(checkpoint.Checkpoint, "stacked", counted)
    monkeypatch.setattr("retouch.export.decoder._export.check_graphs", lambda *_: {})
    export_language_model(tmp_path / "model", tmp_path / "bundle")
    assert 1 <= most <= 2


def test_other_configurations_are_refused() -> None:
    cases = [
        (LLADA, "block_type", "sequential"),
        (DREAM, "rope_scaling", {"factor": 2}),
        (LLADA2, "use_qk_norm", False),
    ]
    for config, key, value in cases:
        with pytest.raises(ModelError, match=f"with {key} = "):
            decoder_for(config["model_type"]).spec({**config, key: value})


def test_edits_need_a_model_without_experts(tmp_path: Path) -> None:
    _saved(FAMILIES["llada2_moe"], tmp_path / "model")
    with pytest.raises(ModelError, match="without experts"):
        export_text_edits(tmp_path / "model", tmp_path / "edits", 16)
    _saved(FAMILIES["llada"], tmp_path / "plain")
    with pytest.raises(ModelError, match="1 to 128 tokens, got 500"):
        export_text_edits(tmp_path / "plain", tmp_path / "edits", 500)
