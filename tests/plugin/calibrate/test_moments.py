"""Calibrating GroupNorm modes on the bundle written by hand: what is measured, written, and read back."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retouch import EditSession
from retouch.bundle import Bundle
from retouch.calibrate import MomentExample, calibrate_moments, rank_correlation, relative_error
from retouch.calibrate._moment_edits import moment_edits


@pytest.fixture
def bundle(hand_built: Any, tmp_path: Path) -> Bundle:
    shutil.copytree(hand_built.bundle.path, tmp_path / "bundle")
    return Bundle.open(tmp_path / "bundle")


def test_calibration_is_written_and_used(bundle: Bundle, hand_built: Any) -> None:
    lines: list[str] = []
    examples = [MomentExample(hand_built.feeds(seed), [hand_built.feeds(50 + seed)["x"]]) for seed in range(6)]
    spec = calibrate_moments(bundle, examples, threads=1, progress=lines.append)
    again = Bundle.open(bundle.path)
    assert again.manifest.moments == spec and again.fingerprint == bundle.fingerprint
    assert spec is not None and len(lines) == 6
    assert len(spec.shifts) == len(spec.errors["cached"]) == len(spec.errors["corrected"]) == 36
    assert spec.conditions == ("sigma",)
    with EditSession(again, threads=1) as session:
        feeds = hand_built.feeds(90)
        run = session.base(feeds)
        assert "b" in run.states, "auto keeps what either mode reads"
        for region, fed in moment_edits(again.manifest, MomentExample(feeds), np.random.default_rng(5)):
            report = session.edit(run, {"x": fed}, region=region).report
            assert report.expected_error is not None and 0 <= report.expected_error < 1


def test_a_calibration_that_does_not_fit_its_time_is_none(bundle: Bundle, hand_built: Any) -> None:
    lines: list[str] = []
    examples = [MomentExample(hand_built.feeds(seed)) for seed in range(6)]
    assert calibrate_moments(bundle, examples, threads=1, seconds=0.0, progress=lines.append) is None
    assert len(lines) == 1 and Bundle.open(bundle.path).manifest.moments is None
    assert calibrate_moments(bundle, examples, threads=1, seconds=1e9, progress=lines.append) is not None
    assert len(lines) == 7


def test_a_calibration_may_take_longer_than_its_time_to_be_one(
    bundle: Bundle, hand_built: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("retouch.calibrate._moments.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    lines: list[str] = []
    examples = [MomentExample(hand_built.feeds(seed)) for seed in range(8)]
    assert calibrate_moments(bundle, examples, threads=1, seconds=2.0, progress=lines.append) is not None
    assert len(lines) == 5, "the five it needs, which take more than two seconds, and no more"


def test_errors_are_relative_to_the_change_inside(bundle: Bundle, hand_built: Any) -> None:
    base, changed = hand_built.feeds(0), hand_built.feeds(1)
    with EditSession(bundle, threads=1) as session:
        run, full = session.base(base), session.base(changed)
        region, _ = next(moment_edits(bundle.manifest, MomentExample(base), np.random.default_rng(2)))
        inside = (Ellipsis, region.mask)
        off = {"y": full.outputs["y"] + 0.25 * (full.outputs["y"] - run.outputs["y"])}
        off["y"][..., ~region.mask] = 99
        assert relative_error(bundle.manifest, region, run, off, full.outputs) == pytest.approx(0.25, rel=1e-5)
        assert relative_error(bundle.manifest, region, run, run.outputs, full.outputs) == pytest.approx(1.0)
        assert relative_error(bundle.manifest, region, run, off, run.outputs) is None
        assert np.isfinite(off["y"][inside]).all()


def test_edits_stay_inside_their_regions_and_differ_in_kind(bundle: Bundle, hand_built: Any) -> None:
    feeds = hand_built.feeds(0)
    example = MomentExample(feeds, [hand_built.feeds(1)["x"]])
    edits = list(moment_edits(bundle.manifest, example, np.random.default_rng(0)))
    assert len(edits) == 6
    for region, fed in edits:
        assert fed.dtype == np.float32
        np.testing.assert_array_equal(fed[..., ~region.mask], feeds["x"][..., ~region.mask])
        assert not np.array_equal(fed, feeds["x"])


def test_edits_reach_as_far_as_contents_may_lie(bundle: Bundle, hand_built: Any) -> None:
    feeds = hand_built.feeds(0)
    spread, moved = feeds["x"].std(), []
    for seed in range(40):
        for region, fed in moment_edits(bundle.manifest, MomentExample(feeds), np.random.default_rng(seed)):
            moved.append(np.abs(fed - feeds["x"])[..., region.mask].mean() / spread)
    assert 2.0 < max(moved) < 4.5 and min(moved) < 0.3


def test_models_without_a_choice_are_left_alone(bundle: Bundle) -> None:
    manifest = bundle.manifest
    only = Bundle(bundle.path, manifest.replace(edits={"cached": manifest.edits["cached"]}))
    assert calibrate_moments(only) is None
    assert Bundle.open(bundle.path).manifest.moments is None


def test_rank_correlation() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 35, 90]) == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    assert rank_correlation([3, 1, 2, 5, 4], [2, 1, 3, 5, 4]) == pytest.approx(0.9)
    assert rank_correlation([1, 2], [1, 2]) == 0.0
