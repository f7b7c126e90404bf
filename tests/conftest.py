"""Settings for all tests, exported reference models, and a text-to-image pipeline as small as its classes allow."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

# Time limits per example fail at random on a busy machine.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.load_profile("default")

TOKENS = 8
WORDS = ("a", "red", "blue", "circle", "square", "left")
BLOCKS = {"sample_size": 8, "block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}


def _tokenizer(folder: Path) -> Any:
    import transformers

    letters = sorted(set("".join(WORDS)))
    vocabulary = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    merges = ["#version: 0.2"]
    for word in WORDS:
        parts = [*word[:-1], f"{word[-1]}</w>"]
        while len(parts) > 1:
            merges.append(f"{parts[0]} {parts[1]}")
            parts[:2] = ["".join(parts[:2])]
            vocabulary.append(parts[0])
    folder.mkdir()
    unique = list(dict.fromkeys(vocabulary))
    (folder / "vocab.json").write_text(json.dumps({token: place for place, token in enumerate(unique)}))
    (folder / "merges.txt").write_text("\n".join(dict.fromkeys(merges)) + "\n")
    return transformers.CLIPTokenizer.from_pretrained(folder, model_max_length=TOKENS), len(unique)


@pytest.fixture(scope="module")
def one_torch_thread() -> Iterator[None]:
    """Threads of torch wait for each other longer than small networks take."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def reference_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of exported reference models: a lasting one if the environment names it, else one for all workers."""
    lasting = os.environ.get("RETOUCH_REFERENCE_MODELS")
    if lasting:
        return Path(lasting)
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "reference_models"


@pytest.fixture(scope="session")
def tiny_pipeline(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A pipeline of diffusers whose prompts have eight tokens, with random weights."""
    diffusers = pytest.importorskip("diffusers")
    import torch
    import transformers

    from retouch.validation.reference_models._weights import draw_weights

    torch.set_num_threads(1)  # the tests run side by side
    tokenizer, size = _tokenizer(tmp_path_factory.mktemp("words") / "tokenizer")
    cross = {"cross_attention_dim": 8, "attention_head_dim": 2, "in_channels": 4, "out_channels": 4}
    unet = diffusers.UNet2DConditionModel(
        **BLOCKS, **cross, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    vae = diffusers.AutoencoderKL(
        **{**BLOCKS, "sample_size": 16}, latent_channels=4, scaling_factor=0.7, mid_block_add_attention=False,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    text = transformers.CLIPTextConfig(
        vocab_size=size, hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=TOKENS, projection_dim=8, bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    encoder = transformers.CLIPTextModel(text)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for module in (unet, vae, encoder):
            draw_weights(module)
    pipeline = diffusers.StableDiffusionPipeline(
        vae=vae, text_encoder=encoder, tokenizer=tokenizer, unet=unet, scheduler=diffusers.DDIMScheduler(),
        safety_checker=None, feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


@pytest.fixture(scope="session")
def exported_tiny_pipeline(tiny_pipeline: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Where the pipeline is exported to, by the batch of its denoiser."""
    from retouch.models import Sizes, TorchOptions, export_pipeline

    @cache
    def exported(batch: int) -> Path:
        folder = tmp_path_factory.mktemp(f"tiny_pipeline_{batch}")
        tiny_pipeline.save_pretrained(folder / "original")
        export_pipeline(folder / "original", folder / "exported", TorchOptions(sizes=Sizes(batch=batch)))
        return folder / "exported"

    return exported
