"""An exported pipeline: images against those of the diffusers pipeline it comes from, and edits of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retouch import Region, RegionError, RunError, SamplingError
from retouch.bundle import Bundle, MomentsSpec, update_manifest
from retouch.ort_ep import register
from retouch.sampling import Generation, MissingStates, PromptEdit, Recording, TextToImage

PIXELS = (16, 16)
POLICY = "exact"


@pytest.fixture(scope="module")
def base(pipeline: TextToImage) -> Generation:
    return pipeline.generate("a red circle", steps=4, seed=5)


def test_an_image_is_that_of_the_original_pipeline(tiny_pipeline: Any, base: Generation) -> None:
    import torch

    made = tiny_pipeline(
        "a red circle", num_inference_steps=4, guidance_scale=7.5, generator=torch.Generator().manual_seed(5),
        output_type="np",
    ).images[0]  # fmt: skip
    assert base.image.shape == (*PIXELS, 3) and base.image.dtype == np.uint8
    assert np.abs(base.image.astype(int) - np.round(made * 255).astype(int)).max() <= 1
    assert base.image.std() > 10


@pytest.mark.skipif(not register(), reason="weights are kept as shorter numbers by Retouch's kernels alone")
def test_edits_keep_weights_as_they_are_told(exported: Path, region: Region) -> None:
    with TextToImage(exported, threads=1, weights="bfloat16") as kept:
        base = kept.generate("a red circle", steps=2, seed=5)
        edited = kept.edit(base, region, "a blue square")
    assert edited.report is not None and edited.trajectory.report is not None
    runs = [run for step in edited.trajectory.report.runs for run in step] + [edited.report.decoding]
    assert all((run.weights == "bfloat16") == (run.path == "edit") for run in runs)
    assert any(run.weights == "bfloat16" for run in runs)
    latents = region.resampled((8, 8)).mask
    np.testing.assert_array_equal(edited.trajectory.latents[..., ~latents], base.trajectory.latents[..., ~latents])


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
    assert edited.report.decoding.group_norm == "cached"
    assert edited.trajectory.report is not None
    assert {run.group_norm for runs in edited.trajectory.report.runs for run in runs} == {"corrected"}
    by_mask = pipeline.edit(base, region.mask, "a blue square", policy=POLICY)
    np.testing.assert_array_equal(by_mask.image, edited.image)


def test_the_decoder_takes_cached_moments_unless_told_otherwise(exported: Path, region: Region, tmp_path: Path) -> None:
    """A calibration foresees what content from anywhere errs, not what an object errs that comes or goes."""
    shutil.copytree(exported, tmp_path, dirs_exist_ok=True)
    decoder = tmp_path / "vae_decoder" / "bundle"
    foreseen = MomentsSpec((), ((0.0,) * 6,) * 5, {"cached": (0.2,) * 5, "corrected": (0.1,) * 5}, 1.0)
    update_manifest(decoder, Bundle.open(decoder).manifest.replace(moments=foreseen))
    for mode, taken in ((None, "cached"), ("auto", "corrected")):
        with TextToImage(tmp_path, threads=1, group_norm=mode) as calibrated:
            edited = calibrated.edit(calibrated.generate("a red circle", steps=1), region, "a blue square")
        assert edited.report is not None and edited.report.decoding.group_norm == taken


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
    alone = pipeline.edit(base, region, "a blue square")
    np.testing.assert_array_equal(first.image, alone.image)
    other = Region.from_boxes([(10, 10, 16, 16)], PIXELS, POLICY)
    second = pipeline.edit(first, other, "a red square")
    outside = ~other.resampled((8, 8)).resampled(PIXELS).mask
    np.testing.assert_array_equal(second.image[outside], first.image[outside])
    kept = base.bytes
    first.close()
    first.close()
    assert base.bytes == kept
    np.testing.assert_array_equal(pipeline.edit(base, region, "a blue square").image, alone.image)
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
    with pytest.raises(SamplingError, match="at most 8 tokens, with those for start and end, got 10"):
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
