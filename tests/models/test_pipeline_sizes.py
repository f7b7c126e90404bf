"""Sizes of a pipeline's components, from their configurations alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retouch.models import Adapter, Sizes, TorchOptions, adapter_for
from retouch.models._pipeline_sizes import component_options

VAE = {"_class_name": "AutoencoderKL", "block_out_channels": [1, 1, 1, 1], "sample_size": 1024}
PIPELINES: dict[str, dict[str, dict[str, Any]]] = {
    "sd": {"unet": {"sample_size": 64}, "vae": {**VAE, "sample_size": 512}},
    "short": {"unet": {"sample_size": 64}, "vae": VAE, "text_encoder": {"max_position_embeddings": 32}},
    "sd3": {"transformer": {"_class_name": "SD3Transformer2DModel", "sample_size": 128}, "vae": VAE},
    "flux": {"transformer": {"_class_name": "FluxTransformer2DModel"}, "vae": VAE},
}
PARTS = {
    "encoder": adapter_for("diffusers.AutoencoderKL", "encoder"),
    "decoder": adapter_for("diffusers.AutoencoderKL", "decoder"),
    "clip": adapter_for("transformers.CLIPTextModel"),
    "t5": adapter_for("transformers.T5EncoderModel"),
    "denoiser": adapter_for("diffusers.UNet2DConditionModel"),
}


@pytest.mark.parametrize(
    ("pipeline", "name", "part", "given", "expected"),
    [
        ("sd", "unet", "denoiser", Sizes(batch=2), Sizes(batch=2, height=64, width=64)),
        ("short", "unet", "denoiser", Sizes(batch=2), Sizes(batch=2, height=64, width=64, text=32)),
        ("short", "unet", "denoiser", Sizes(text=16), Sizes(height=64, width=64, text=16)),
        ("sd", "vae", "encoder", Sizes(batch=2), Sizes(height=512, width=512)),
        ("sd", "vae", "decoder", Sizes(height=96, width=64), Sizes(height=96, width=64)),
        ("sd", "text_encoder", "clip", Sizes(text=154), Sizes()),
        ("sd3", "text_encoder_3", "t5", Sizes(), Sizes(text=256)),
        ("sd3", "text_encoder_3", "t5", Sizes(text=589), Sizes(text=512)),
        ("sd3", "transformer", "denoiser", Sizes(text=589), Sizes(text=589, height=128, width=128)),
        ("flux", "transformer", "denoiser", Sizes(), Sizes(height=128, width=128)),
        ("flux", "text_encoder_2", "t5", Sizes(text=256), Sizes(text=256)),
        ("flux", "vae", "encoder", Sizes(height=64, width=32), Sizes(height=512, width=256)),
    ],
)
def test_sizes_follow_from_the_latents(
    pipeline: str, name: str, part: str, given: Sizes, expected: Sizes, tmp_path: Path
) -> None:
    for folder, config in PIPELINES[pipeline].items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(json.dumps(config))
    adapter: Adapter = PARTS[part]
    assert component_options(tmp_path, name, adapter, TorchOptions(sizes=given)).sizes == expected


def test_without_an_autoencoder(tmp_path: Path) -> None:
    (tmp_path / "unet").mkdir()
    (tmp_path / "unet" / "config.json").write_text("{}")
    options = TorchOptions(sizes=Sizes(batch=2))
    assert component_options(tmp_path, "unet", PARTS["denoiser"], options).sizes == Sizes(batch=2)
