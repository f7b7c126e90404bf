"""``auto`` takes the moments that calibrated edits make expect less error of, and says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retouch import EditRequest, EditSession, Region
from retouch.bundle import BreakEven, Bundle, MomentsSpec, TensorSpec
from retouch.engines.ort import OrtEngine
from retouch.region import POLICIES
from retouch.session import mode_of_generations
from retouch.session._expectation import Expectations
from retouch.session._mode import read_ids

PATCH = Region.from_boxes([(2, 3, 6, 7)], (8, 8))


def calibrated(bundle: Bundle) -> Bundle:
    """Errors of ``cached`` grow with the shift of the mean, those of ``corrected`` are the same everywhere."""
    means = np.linspace(np.log(0.03), np.log(4.0), 16)
    shifts = tuple((-1.5, float(mean), -1.0, 0.0, 0.0, 0.0, -0.7) for mean in means)
    cached = tuple(float(np.exp(mean) / 5) for mean in means)
    spec = MomentsSpec(("sigma",), shifts, {"cached": cached, "corrected": (0.1,) * 16}, 0.9)
    return Bundle(bundle.path, bundle.manifest.replace(moments=spec))


def moved(feeds: Any, by: float) -> dict[str, Any]:
    return {"x": np.where(PATCH.mask, feeds["x"] + np.float32(by), feeds["x"])}


@pytest.fixture
def session(hand_built: Any) -> Any:
    with EditSession(calibrated(hand_built.bundle), threads=1) as session:
        yield session


@pytest.mark.parametrize(("by", "moments"), [(0.01, "cached"), (3.0, "corrected")])
def test_the_moments_with_the_smaller_expected_error_are_taken(
    session: Any, hand_built: Any, by: float, moments: str
) -> None:
    feeds = hand_built.feeds()
    run = session.base(feeds)
    result = session.edit(run, moved(feeds, by), region=PATCH)
    report = result.report
    assert report.group_norm == moments
    assert "expected errors" in report.group_norm_reason
    assert report.shift is not None and report.shift.mean == pytest.approx(by / feeds["x"].std(), rel=0.2)
    np.testing.assert_array_equal(
        result.outputs["y"], session.edit(run, moved(feeds, by), region=PATCH, group_norm=moments).outputs["y"]
    )
    assert f"error of {report.expected_error:.1%}" in str(report)


def test_larger_shifts_make_expect_larger_errors(session: Any, hand_built: Any) -> None:
    feeds = hand_built.feeds()
    run = session.base(feeds)
    found = [
        session.edit(run, moved(feeds, by), region=PATCH, group_norm="cached").report.expected_error
        for by in (0.2, 0.8, 3.0)
    ]
    assert found == sorted(found) and found[0] > 0


@pytest.mark.parametrize("by", [0.5, 3.0])
def test_the_expected_error_follows_what_the_edit_changed_outside_of_its_region(hand_built: Any, by: float) -> None:
    """Edits whose shifts were all alike erred as much as they had changed outside, relative to the inside."""
    bundle = calibrated(hand_built.bundle)
    assert bundle.manifest.moments is not None
    spills = np.linspace(-6.0, 0.0, 16).tolist()
    errors = {"cached": tuple(np.exp(spills)), "corrected": (9.0,) * 16}
    shifts = (bundle.manifest.moments.shifts[8],) * 16
    spec = MomentsSpec(("sigma",), shifts, errors, 0.9, {"cached": tuple(spills), "corrected": tuple(spills)})
    feeds = hand_built.feeds()
    with EditSession(Bundle(bundle.path, bundle.manifest.replace(moments=spec)), threads=1) as session:
        run = session.base(feeds)
        result = session.edit(run, moved(feeds, by), region=PATCH)
    change = np.abs(result.outputs["y"] - run.outputs["y"])
    inside = PATCH.mask
    outside_over_inside = change[..., ~inside].mean() / change[..., inside].mean()
    assert result.report.group_norm == "cached"
    assert result.report.expected_error == pytest.approx(outside_over_inside, rel=0.2)


def test_no_error_is_made_up_where_nothing_was_calibrated(session: Any, hand_built: Any) -> None:
    feeds = hand_built.feeds()
    run = session.base(feeds)
    one = moved(feeds, 3.0)
    for change, options, why in (
        ({**one, "sigma": np.float32([0.9])}, {}, "another 'sigma'"),
        ({}, {}, "does not change"),
        (one, {"policy": "exact"}, "policy balanced only"),
    ):
        report = session.edit(run, change, region=PATCH, **options).report
        assert report.expected_error is None and why in report.expected_from
    with EditSession(hand_built.bundle, threads=1) as plain:
        report = plain.edit(plain.base(feeds), one, region=PATCH).report
        assert (report.group_norm, report.expected_error) == ("cached", None)
        assert "not calibrated" in report.group_norm_reason


@pytest.mark.parametrize(
    ("size", "lacks", "moments"), [(1, 0, "cached"), (6, 0, "corrected"), (6, 1, "cached")], ids=str
)
def test_another_prompt_is_edited_with_corrected_moments(hand_built: Any, size: int, lacks: int, moments: str) -> None:
    manifest, engine = calibrated(hand_built.bundle).manifest, OrtEngine()
    feeds = {name: engine.value(array) for name, array in hand_built.feeds().items()}
    prompts = [engine.value(np.full((1, size), number, np.float32)) for number in (1, 2)]
    kept, edited = ({**feeds, "prompt": prompt} for prompt in prompts)
    states = sorted(read_ids(manifest.edits["corrected"]))[lacks:]
    found = Expectations(manifest).of("run", kept, edited, None, POLICIES["balanced"], "auto", frozenset(states))
    assert (found.moments, found.error) == (moments, None)
    assert "another 'prompt'" in found.reason and "another 'prompt'" in found.basis


def test_a_model_without_group_norm_says_so(hand_built: Any) -> None:
    manifest = hand_built.bundle.manifest
    only = Bundle(hand_built.bundle.path, manifest.replace(edits={"cached": manifest.edits["cached"]}))
    with EditSession(only, threads=1) as session:
        report = session.edit(session.base(hand_built.feeds()), hand_built.feeds(1), region=PATCH).report
    assert report.expected_error is None and "no GroupNorm" in report.expected_from


def test_the_dense_fallback_errs_by_nothing(hand_built: Any) -> None:
    bundle = calibrated(hand_built.bundle)
    fallback = {OrtEngine().name: BreakEven(OrtEngine().name, 1, 0.01)}
    bundle = Bundle(bundle.path, bundle.manifest.replace(break_even=fallback))
    with EditSession(bundle, threads=1) as session:
        feeds = hand_built.feeds()
        report = session.edit(session.base(feeds), moved(feeds, 3.0), region=PATCH).report
    assert (report.path, report.expected_error) == ("dense", 0.0)


def test_a_run_that_lacks_states_is_edited_with_what_it_has(session: Any, hand_built: Any) -> None:
    feeds = hand_built.feeds()
    committed = session.edit(session.base(feeds), moved(feeds, 0.01), region=PATCH).commit()
    report = session.edit(committed, moved(feeds, 3.0), region=PATCH).report
    assert report.group_norm == "cached" and "lacks states that 'corrected' reads" in report.group_norm_reason


def test_preloading_opens_the_graph_that_most_edits_take(session: Any) -> None:
    opened = [file for file, _ in session.preload()._runtime.programs._open]
    assert "edit_cached.onnx" in opened and "edit_corrected.onnx" not in opened


def test_edits_with_moments_of_their_own_share_no_run(session: Any, hand_built: Any) -> None:
    feeds = hand_built.feeds()
    run = session.base(feeds)
    requests = [EditRequest(PATCH, moved(feeds, by)) for by in (0.01, 3.0)]
    together = session.edit_many(run, requests)
    assert [result.report.group_norm for result in together] == ["cached", "corrected"]
    for request, result in zip(requests, together, strict=True):
        alone = session.edit(run, request.feeds, region=PATCH)
        np.testing.assert_array_equal(alone.outputs["y"], result.outputs["y"])


def test_edits_of_generated_images_have_moments_of_their_own(hand_built: Any) -> None:
    bundle = hand_built.bundle
    for manifest in (bundle.manifest, calibrated(bundle).manifest):
        assert mode_of_generations(manifest) == "cached"
        prompted = manifest.replace(inputs=(*manifest.inputs, TensorSpec("text", "float32", (1, 3, 4))))
        assert mode_of_generations(prompted) == ("corrected" if manifest.moments is None else "auto")
