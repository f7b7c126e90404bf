"""An exported pipeline: images against those of the diffusers pipeline it comes from, and edits of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retouch import Region, RegionError, RunError, SamplingError
from retouch.models import Sizes, TorchOptions, export_pipeline
from retouch.sampling import Generation, MissingStates, PromptEdit, Recording, TextToImage

TOKENS = 8
WORDS = ("a", "red", "blue", "circle", "square", "left")
BLOCKS = {"sample_size": 8, "block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}
PIXELS = (16, 16)
BOX = [(2, 3, 8, 9)]
POLICY = "exact"


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
def original(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A pipeline of diffusers, with random weights."""
    diffusers = pytest.importorskip("diffusers")
    import torch
    import transformers

    from retouch.validation.reference_models._weights import draw_weights

    torch.set_num_threads(1)  # the tests run side by side
    tokenizer, size = _tokenizer(tmp_path_factory.mktemp("words") / "tokenizer")
    cross = {"cross_attention_dim": 8, "attention_head_dim": 2, "in_channels": 4, "out_channels": 4}
    unet = diffusers.UNet2DConditionModel(
        **BLOCKS, **cross, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip
    vae = diffusers.AutoencoderKL(
        **{**BLOCKS, "sample_size": 16}, latent_channels=4, scaling_factor=0.7,
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


@pytest.fixture(scope="module")
def exported(original: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipelines")
    original.save_pretrained(folder / "original")
    export_pipeline(folder / "original", folder / "exported", TorchOptions(sizes=Sizes(batch=1, text=TOKENS)))
    return folder / "exported"


@pytest.fixture(scope="module")
def pipeline(exported: Path) -> Iterator[TextToImage]:
    with TextToImage(exported, threads=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def base(pipeline: TextToImage) -> Generation:
    return pipeline.generate("a red circle", steps=4, seed=5)


@pytest.fixture
def region() -> Region:
    return Region.from_boxes(BOX, PIXELS, POLICY)


def test_an_image_is_that_of_the_original_pipeline(original: Any, base: Generation) -> None:
    import torch

    made = original(
        "a red circle", num_inference_steps=4, guidance_scale=7.5, generator=torch.Generator().manual_seed(5),
        output_type="np",
    ).images[0]  # fmt: skip
    assert base.image.shape == (*PIXELS, 3) and base.image.dtype == np.uint8
    assert np.abs(base.image.astype(int) - np.round(made * 255).astype(int)).max() <= 1
    assert base.image.std() > 10


def test_an_edit_changes_pixels_in_its_region_only(pipeline: TextToImage, base: Generation, region: Region) -> None:
    edited = pipeline.edit(base, region, "a blue square")
    latents = region.resampled((8, 8)).mask
    difference = edited.trajectory.latents != base.trajectory.latents
    np.testing.assert_array_equal(difference.any((0, 1)) & ~latents, np.zeros((8, 8), bool))
    assert difference.any()
    changed = (edited.image != base.image).any(-1)
    assert changed.any()
    np.testing.assert_array_equal(changed & ~Region.from_mask(latents, POLICY).resampled(PIXELS).mask, False)
    assert edited.base is base and edited.prompt == "a blue square" and edited.report is not None
    assert edited.report.decoding.path == "edit" and "decoding" in str(edited.report)
    by_mask = pipeline.edit(base, region.mask, "a blue square", policy=POLICY)
    np.testing.assert_array_equal(by_mask.image, edited.image)


def test_several_edits_and_sliders(pipeline: TextToImage, base: Generation, region: Region) -> None:
    direction = pipeline.direction("a red circle", "a blue circle")
    edits = [PromptEdit(region, direction=(direction, strength)) for strength in (0.5, 1.0)]
    half, whole = pipeline.edit_many(base, edits)
    alone = pipeline.edit(base, region, "a blue circle")
    np.testing.assert_allclose(whole.trajectory.latents, alone.trajectory.latents, rtol=0, atol=1e-4)
    assert not np.array_equal(half.image, whole.image)
    assert whole.prompt == base.prompt


def test_edits_of_an_edit(pipeline: TextToImage, base: Generation, region: Region) -> None:
    first = pipeline.edit(base, region, "a blue square", record=True)
    other = Region.from_boxes([(10, 10, 16, 16)], PIXELS, POLICY)
    second = pipeline.edit(first, other, "a red square")
    outside = ~other.resampled((8, 8)).resampled(PIXELS).mask
    np.testing.assert_array_equal(second.image[outside], first.image[outside])
    kept = base.bytes
    first.close()
    first.close()
    assert base.bytes == kept
    np.testing.assert_array_equal(
        pipeline.edit(base, region, "a blue square").image, pipeline.edit(base, region, "a blue square").image
    )
    with pytest.raises(RunError, match="record=False"):
        pipeline.edit(second, region, "a red square")


def test_what_was_dropped_can_be_computed_again(pipeline: TextToImage, base: Generation, region: Region) -> None:
    expected = pipeline.edit(base, region, "a blue square")
    bare = pipeline.generate("a red circle", steps=4, seed=5, recording=Recording(last=0))
    assert bare.bytes == 0 and bare.decoded is None
    with pytest.raises(RunError):
        pipeline.edit(bare, region, "a blue square")
    again = pipeline.edit(bare, region, "a blue square", missing=MissingStates.RECOMPUTE)
    np.testing.assert_array_equal(again.image, expected.image)
    assert again.report is not None and again.report.sampling.recomputed == (0, 1, 2, 3)


def test_a_proposal_is_on_the_latents(pipeline: TextToImage, base: Generation) -> None:
    proposal = pipeline.propose_region(base, "a blue square left")
    assert proposal.heat.shape == (8, 8)
    edited = pipeline.edit(base, proposal.region(0.3), "a blue square left")
    assert not np.array_equal(edited.image, base.image)


def test_what_does_not_fit_says_so(
    pipeline: TextToImage, base: Generation, region: Region, tmp_path: Path, exported: Path
) -> None:
    with pytest.raises(SamplingError, match=f"at most {TOKENS} tokens, with those for start and end, got 10"):
        pipeline.generate("a red circle left a blue square left")
    with pytest.raises(SamplingError, match="Expected a prompt, as a string, got int"):
        pipeline.edit(base, region, 5)  # type: ignore[arg-type]
    with pytest.raises(
        RegionError, match=r"region of the image, \(16, 16\), or of the latents, \(8, 8\), got one of \(5, 5\)"
    ):
        pipeline.edit(base, np.ones((5, 5), bool), "a blue square")
    with pytest.raises(SamplingError, match="has no retouch.json"):
        TextToImage(tmp_path).open()
    record = json.loads((exported / "retouch.json").read_text())
    del record["components"]["text_encoder"]
    (tmp_path / "retouch.json").write_text(json.dumps(record))
    with pytest.raises(SamplingError, match="which lacks text_encoder"):
        TextToImage(tmp_path).open()
    (tmp_path / "retouch.json").write_text("{")
    with pytest.raises(SamplingError, match="hold JSON"):
        TextToImage(tmp_path).open()
