"""Regions proposed from what a model predicts under other conditions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from retouch import EditSession, Region, RegionError, SamplingError
from retouch.export import ExportOptions, export_onnx
from retouch.sampling import Conditions, Denoiser, edit, generate, propose_region

PLACE = (slice(2, 5), slice(3, 7))
MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[1,2,8,8] sample, float[1] timestep, float[1,1,1,1] text) => (float[1,2,8,8] prediction)
    <float small = {0.3}> {
    a = Conv<pads = [1, 1, 1, 1]>(sample, kernel)
    b = Mul(text, place)
    c = Add(a, b)
    prediction = Mul(c, small)
}
"""


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Denoiser]:
    """A denoiser whose condition matters at one place only."""
    model = onnx.parser.parse_model(MODEL)
    place = np.zeros((1, 1, 8, 8), np.float32)
    place[0, 0][PLACE] = 1
    kernel = np.random.default_rng(0).standard_normal((2, 2, 3, 3), dtype=np.float32) / 4
    for name, array in (("place", place), ("kernel", kernel)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    folder: Path = tmp_path_factory.mktemp("placed")
    onnx.save(model, folder / "model.onnx")
    options = ExportOptions(editable="sample", axes=(2, 3), min_coverage=0.0)
    with EditSession(export_onnx(folder / "model.onnx", folder / "bundle", options), threads=1) as session:
        yield Denoiser(session)


def conditions(value: float) -> Conditions:
    return Conditions({"text": np.full((1, 1, 1, 1), value, np.float32)})


def test_the_place_that_conditions_change_is_found(setting: Any, placed: Denoiser) -> None:
    base = generate(placed, setting.schedule(steps=10), conditions(1.0))
    kept = placed.session.runs()
    proposal = propose_region(base, conditions(2.0))
    assert placed.session.runs() == kept
    assert proposal.steps == (2, 3, 4) and proposal.heat.shape == (8, 8)
    assert proposal.heat.min() >= 0 and proposal.heat.max() == 1
    expected = np.zeros((8, 8), bool)
    expected[PLACE] = True
    np.testing.assert_array_equal(proposal.region().mask, expected)
    edited = edit(base, proposal.region(policy="exact"), conditions(2.0))
    np.testing.assert_array_equal((edited.latents != base.latents).any((0, 1)), expected)
    assert propose_region(base, conditions(2.0), steps=[7, 1]).steps == (1, 7)


def test_what_does_not_fit_says_so(setting: Any, placed: Denoiser) -> None:
    base = generate(placed, setting.schedule(steps=4), conditions(1.0))
    with pytest.raises(SamplingError, match="got the same output"):
        propose_region(base, conditions(1.0))
    for steps in ([], [4], [-1]):
        with pytest.raises(SamplingError, match="steps from 0 to 3"):
            propose_region(base, conditions(2.0), steps=steps)
    with pytest.raises(RegionError, match="nothing to edit"):
        propose_region(base, conditions(2.0)).region(threshold=1.0)


def test_images_that_differ_give_a_region() -> None:
    before = np.random.default_rng(0).integers(0, 250, (6, 9, 3), np.uint8)
    after = before.copy()
    after[2:4, 5] += 3
    after[5, 8, 1] += 1
    region = Region.from_difference(before, after, policy="exact")
    assert sorted(zip(*np.nonzero(region.mask), strict=True)) == [(2, 5), (3, 5), (5, 8)]
    assert int(Region.from_difference(after, before, threshold=1).mask.sum()) == 2
    assert int(Region.from_difference(before[..., 0], after[..., 0]).mask.sum()) == 2
    with pytest.raises(RegionError, match="Expected images that differ by more than 3"):
        Region.from_difference(before, after, threshold=3)
    with pytest.raises(RegionError, match=r"two images of one shape.*got \(6, 9, 3\) and \(6, 9\)"):
        Region.from_difference(before, after[..., 0])


def test_regions_at_another_resolution() -> None:
    pixels = Region.from_boxes([(7, 0, 9, 1)], (16, 16), "exact")
    latents = pixels.resampled((8, 8))
    assert sorted(zip(*np.nonzero(latents.mask), strict=True)) == [(3, 0), (4, 0)]
    assert latents.policy == pixels.policy
    np.testing.assert_array_equal(latents.resampled((16, 16)).mask.nonzero()[0], np.repeat([6, 7, 8, 9], 2))
    with pytest.raises(RegionError, match="Expected 2 dims"):
        pixels.resampled((8,))
