"""Regions of their own for the samples of a batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from retouch import EditRequest, EditSession, Region
from retouch.bundle import Bundle
from retouch.errors import RegionError
from retouch.export import ExportOptions, export_onnx

DIMS = (8, 8)
MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
model (float[N,4,8,8] x, float[N,4] c) => (float[N,4,8,8] y)
<int64[4] wide = {0, 4, 1, 1}, int64[3] flat = {0, 4, 64}, int64[4] square = {0, 4, 8, 8}>
{
    shift = Reshape(c, wide)
    near = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w)
    moved = Add(near, shift)
    h = Relu(moved)
    tokens = Reshape(h, flat)
    rows = Transpose <perm = [0, 2, 1]> (tokens)
    scores = MatMul(rows, tokens)
    weights = Softmax <axis = -1> (scores)
    seen = MatMul(weights, rows)
    back = Transpose <perm = [0, 2, 1]> (seen)
    image = Reshape(back, square)
    y = Add(image, h)
}
"""
LEFT, RIGHT = (Region.from_boxes([box], DIMS, "exact") for box in ((1, 1, 4, 3), (2, 4, 7, 7)))
EITHER = Region.from_mask(LEFT.mask | RIGHT.mask, "exact")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = onnx.parser.parse_model(MODEL)
    weights = np.random.default_rng(0).standard_normal((4, 4, 3, 3)).astype(np.float32) / 4
    made.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = tmp_path_factory.mktemp("samples") / "model.onnx"
    onnx.save(made, path)
    return path


def exported(model: Path, folder: Path, batch: int) -> Bundle:
    return export_onnx(model, folder / f"{batch}", ExportOptions(editable="x", axes=(2, 3), fix={"batch": batch}))


@pytest.fixture(scope="module")
def pair(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return exported(model, tmp_path_factory.mktemp("pair"), 2)


@pytest.fixture(scope="module")
def one(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return exported(model, tmp_path_factory.mktemp("one"), 1)


@pytest.fixture(scope="module")
def feeds() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    return {
        "x": generator.standard_normal((2, 4, *DIMS)).astype(np.float32),
        "c": generator.standard_normal((2, 4)).astype(np.float32),
    }


@pytest.fixture(scope="module")
def fresh() -> np.ndarray:
    return np.random.default_rng(2).standard_normal((2, 4, *DIMS)).astype(np.float32)


def alone(one: Bundle, feeds: dict[str, np.ndarray], fresh: np.ndarray, regions: list[Region | None]) -> np.ndarray:
    """Every sample by a bundle of one, which computes the rows of all regions; put into its own rows only."""
    outputs = []
    with EditSession(one, threads=1) as session:
        for sample, region in enumerate(regions):
            run = session.base({name: feed[sample : sample + 1] for name, feed in feeds.items()})
            own = np.zeros(DIMS, bool) if region is None else region.mask
            changed = np.where(own, fresh[sample : sample + 1], run.feeds["x"])
            got = session.edit(run, {"x": changed}, region=EITHER, fallback=False).outputs["y"]
            outputs.append(np.where(own, got, run.outputs["y"]))
    return np.concatenate(outputs)


def test_every_sample_changes_in_its_own_region(
    pair: Bundle, one: Bundle, feeds: dict[str, np.ndarray], fresh: np.ndarray
) -> None:
    with EditSession(pair, threads=1) as session:
        run = session.base(feeds)
        result = session.edit(run, {"x": fresh}, region=[LEFT, RIGHT], fallback=False)
    expected = alone(one, feeds, fresh, [LEFT, RIGHT])
    np.testing.assert_allclose(result.outputs["y"], expected, atol=1e-5)
    for sample, region in enumerate((LEFT, RIGHT)):
        moved = (result.outputs["y"][sample] != run.outputs["y"][sample]).any(0)
        assert not moved[~region.mask].any() and moved[region.mask].all()
    assert result.report.area == EITHER.area
    assert result.report.ignored == 2 * 64 - LEFT.mask.sum() - RIGHT.mask.sum()
    assert "any of 2 samples has its region" in result.report.reason


def test_a_sample_without_a_region_stays_as_it_is(
    pair: Bundle, feeds: dict[str, np.ndarray], fresh: np.ndarray
) -> None:
    with EditSession(pair, threads=1) as session:
        run = session.base(feeds)
        result = session.edit(run, {"x": fresh}, region=[None, RIGHT], fallback=False)
        assert np.array_equal(result.outputs["y"][0], run.outputs["y"][0])
        assert (result.outputs["y"][1] != run.outputs["y"][1]).any()
        committed = result.commit()
        assert np.array_equal(committed.outputs["y"], result.outputs["y"])
        assert np.array_equal(committed.feeds["x"][0], feeds["x"][0])
        again = session.edit(committed, {"x": fresh}, region=[LEFT, None], fallback=False)
    np.testing.assert_array_equal(again.outputs["y"][1], committed.outputs["y"][1])
    assert (again.outputs["y"][0] != committed.outputs["y"][0]).any()


def test_masks_and_the_policy_that_is_passed(pair: Bundle, feeds: dict[str, np.ndarray], fresh: np.ndarray) -> None:
    with EditSession(pair, threads=1) as session:
        run = session.base(feeds)
        regions = session.edit(run, {"x": fresh}, region=[LEFT, RIGHT], fallback=False)
        masks = session.edit(run, {"x": fresh}, region=[LEFT.mask, RIGHT.mask], policy="exact", fallback=False)
    np.testing.assert_array_equal(masks.outputs["y"], regions.outputs["y"])


def test_edits_of_several_samples_share_a_run(pair: Bundle, feeds: dict[str, np.ndarray], fresh: np.ndarray) -> None:
    small = [Region.from_boxes([box], DIMS, "exact") for box in ((0, 0, 1, 1), (5, 5, 6, 6))]
    requests = [EditRequest([small[0], None], {"x": fresh}), EditRequest([None, small[1]], {"x": -fresh})]
    with EditSession(pair, threads=1) as session:
        run = session.base(feeds)
        results = session.edit_many(run, requests, fallback=False)
        for request, result in zip(requests, results, strict=True):
            single = session.edit(run, request.feeds, region=request.region, fallback=False)
            np.testing.assert_allclose(result.outputs["y"], single.outputs["y"], atol=1e-6)
        assert [result.report.stacked for result in results] == [2, 2], results[0].report.reason
        assert np.array_equal(results[0].outputs["y"][1], run.outputs["y"][1])


def test_a_full_run_is_put_in_place_by_sample(pair: Bundle, feeds: dict[str, np.ndarray], fresh: np.ndarray) -> None:
    from retouch.calibrate import calibrate

    calibrate(pair, threads=1)
    everything = Region.full(DIMS, "exact")
    with EditSession(pair, threads=1) as session:
        run = session.base(feeds)
        full = session.base({**feeds, "x": np.stack([fresh[0], feeds["x"][1]])})
        result = session.edit(run, {"x": fresh}, region=[everything, None])
    np.testing.assert_allclose(result.outputs["y"][0], full.outputs["y"][0], atol=1e-5)
    assert np.array_equal(result.outputs["y"][1], run.outputs["y"][1])


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        ([LEFT], "one for each sample of a batch; got 1, and the bundle was exported for a batch of 2.*edit_many"),
        ([LEFT, Region.from_mask(RIGHT.mask, "balanced")], "one shape and one policy"),
        ([None, None], "at least one of them not None"),
        ([LEFT, "right"], "Expected a Region or a boolean numpy array, got str"),
    ],
)
def test_regions_that_do_not_fit(
    pair: Bundle, feeds: dict[str, np.ndarray], regions: list[Region | None], message: str
) -> None:
    with EditSession(pair, threads=1) as session:
        run = session.base(feeds)
        with pytest.raises(RegionError, match=message):
            session.edit(run, region=regions)


def test_a_bundle_of_single_samples_names_edit_many(one: Bundle, feeds: dict[str, np.ndarray]) -> None:
    with EditSession(one, threads=1) as session:
        run = session.base({name: feed[:1] for name, feed in feeds.items()})
        with pytest.raises(RegionError, match=r"for single samples. Export it with --fix batch=2; .*edit_many"):
            session.edit(run, region=[LEFT, RIGHT])
