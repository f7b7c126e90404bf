"""Pipelines of other families, exported whole and run by diffusers with sessions in place of their modules."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from retouch import EditSession, InferenceSession, Region
from retouch.models import Sizes, TorchOptions, export_pipeline

pytest.importorskip("diffusers")

TEXT = 5
LATENTS = (8, 8)


@dataclass(frozen=True)
class Family:
    """A pipeline's class, its scheduler, its parts, the sizes to export, and the embeddings that a call is given."""

    pipeline: str
    scheduler: str
    parts: Callable[[Any], Mapping[str, Any]]
    sizes: Sizes
    embeddings: Mapping[str, tuple[int, ...]]
    options: Mapping[str, Any]


def _clip(*, projected: bool, width: int = 8, pooled: int = 8) -> Any:
    import transformers

    config = transformers.CLIPTextConfig(
        vocab_size=32, hidden_size=width, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=TEXT, projection_dim=pooled,
    )  # fmt: skip
    kind = transformers.CLIPTextModelWithProjection if projected else transformers.CLIPTextModel
    return kind(config)


def _t5() -> Any:
    import transformers

    config = transformers.T5Config(vocab_size=32, d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2)
    return transformers.T5EncoderModel(config)


# The autoencoder's attention is tested by itself.
PLAIN = {"mid_block_add_attention": False}
FAMILIES = {
    "sdxl": Family(
        "StableDiffusionXLPipeline",
        "EulerDiscreteScheduler",
        lambda tiny: {
            "vae": tiny("autoencoder", **PLAIN),
            "text_encoder": _clip(projected=False),
            "text_encoder_2": _clip(projected=True, pooled=16),
            "unet": tiny("sdxl", cross_attention_dim=16),
        },
        Sizes(batch=2, text=TEXT),
        {
            "prompt_embeds": (1, TEXT, 16),
            "negative_prompt_embeds": (1, TEXT, 16),
            "pooled_prompt_embeds": (1, 16),
            "negative_pooled_prompt_embeds": (1, 16),
        },
        {"guidance_scale": 3.0},
    ),
    "sd3": Family(
        "StableDiffusion3Pipeline",
        "FlowMatchEulerDiscreteScheduler",
        lambda tiny: {
            "vae": tiny("autoencoder", **PLAIN),
            "text_encoder": _clip(projected=True, width=4, pooled=4),
            "text_encoder_2": _clip(projected=True, width=4, pooled=4),
            "text_encoder_3": _t5(),
            "transformer": tiny("sd3"),
        },
        Sizes(batch=2, text=77 + TEXT),
        {
            "prompt_embeds": (1, 77 + TEXT, 8),
            "negative_prompt_embeds": (1, 77 + TEXT, 8),
            "pooled_prompt_embeds": (1, 8),
            "negative_pooled_prompt_embeds": (1, 8),
        },
        {"guidance_scale": 3.0},
    ),
    "flux": Family(
        "FluxPipeline",
        "FlowMatchEulerDiscreteScheduler",
        lambda tiny: {
            "vae": tiny("autoencoder", latent_channels=2, **PLAIN),
            "text_encoder": _clip(projected=False),
            "text_encoder_2": _t5(),
            "transformer": tiny("flux"),
        },
        Sizes(height=LATENTS[0], width=LATENTS[1], text=TEXT),
        {"prompt_embeds": (1, TEXT, 8), "pooled_prompt_embeds": (1, 8)},
        {"guidance_scale": 3.5},
    ),
}


@pytest.fixture(scope="module", params=FAMILIES)
def case(request: pytest.FixtureRequest, tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A family, its pipeline of torch modules, and where it was exported to."""
    import diffusers
    import torch

    family = FAMILIES[request.param]
    torch.manual_seed(0)
    parts = {name: part.eval() for name, part in family.parts(tiny).items()}
    scheduler = getattr(diffusers, family.scheduler)()
    root = tmp_path_factory.mktemp(request.param)
    index: dict[str, Any] = {"_class_name": family.pipeline, "scheduler": ["diffusers", family.scheduler]}
    for name, part in parts.items():
        part.save_pretrained(root / "torch" / name)
        index[name] = [type(part).__module__.partition(".")[0], type(part).__name__]
    scheduler.save_pretrained(root / "torch" / "scheduler")
    (root / "torch" / "model_index.json").write_text(json.dumps(index))
    bundles = export_pipeline(root / "torch", root / "onnx", TorchOptions(sizes=family.sizes))
    absent = {f"tokenizer{suffix}": None for suffix in ("", "_2", "_3") if f"text_encoder{suffix}" in parts}
    pipeline = getattr(diffusers, family.pipeline)(**parts, **absent, scheduler=scheduler)
    pipeline.set_progress_bar_config(disable=True)
    return SimpleNamespace(family=family, pipeline=pipeline, path=root / "onnx", bundles=bundles)


@pytest.mark.slow
def test_diffusers_runs_it_with_sessions_in_place_of_modules(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"vae_encoder", "vae_decoder"} < set(case.bundles)
    expected = _generate(case)
    for name in ("unet", "transformer"):
        if (module := getattr(case.pipeline, name, None)) is not None:
            _replace(module, case.path / name / "model.onnx", monkeypatch)
    np.testing.assert_allclose(_generate(case), expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.slow
def test_every_text_encoder_is_a_graph_beside_its_configuration(case: Any) -> None:
    encoders = [name for name in case.pipeline.components if name.startswith("text_encoder")]
    assert encoders
    for name in encoders:
        session = onnxruntime.InferenceSession(case.path / name / "model.onnx")
        (ids,) = session.get_inputs()
        assert ids.shape == [1, TEXT]
        assert (case.path / name / "config.json").is_file()
        values = session.run(None, {ids.name: np.arange(TEXT, dtype=np.int32)[None]})
        assert all(np.isfinite(value).all() for value in values)


@pytest.mark.slow
def test_its_decoder_edits(case: Any) -> None:
    with EditSession(case.bundles["vae_decoder"], threads=1) as session:
        (latents,) = session.bundle.manifest.inputs
        base = session.base({latents.name: np.zeros(latents.shape, np.float32)})
        region = Region.from_boxes([(0, 0, 2, 2)], LATENTS)
        changed = {latents.name: np.ones(latents.shape, np.float32)}
        outputs = session.edit(base, changed, region=region).outputs["sample"]
    moved = (outputs != base.outputs["sample"]).any((0, 1))
    assert moved[:4, :4].all() and not moved.all()


def _generate(case: Any) -> np.ndarray:
    """Latents after three steps from given embeddings and noise."""
    import torch

    family = case.family
    generator = torch.Generator().manual_seed(1)
    embeddings = {name: torch.randn(shape, generator=generator) for name, shape in family.embeddings.items()}
    scale = case.pipeline.vae_scale_factor
    height, width = (size * scale for size in LATENTS)
    call = case.pipeline(
        **embeddings, **family.options, height=height, width=width, num_inference_steps=3, output_type="latent",
        generator=torch.Generator().manual_seed(2),
    )  # fmt: skip
    return call.images.numpy()


def _replace(module: Any, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a module computed by a session on its exported graph."""
    import torch

    session = InferenceSession(graph)
    inputs = session.get_inputs()

    def forward(*positional: Any, **given: Any) -> tuple[Any, ...]:
        given |= zip(("sample", "timestep"), positional, strict=False)
        given |= {key: value for value in given.values() if isinstance(value, dict) for key, value in value.items()}
        feeds = {}
        for spec in inputs:
            value = given[spec.name.removeprefix("added_cond_kwargs.")]
            array = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
            wanted = np.float32 if "float" in spec.type else np.int64
            feeds[spec.name] = np.broadcast_to(array, spec.shape).astype(wanted)
        return (torch.from_numpy(session.run(None, feeds)[0]),)

    monkeypatch.setattr(module, "forward", forward)
