"""Break-even: measured, interpolated, written, obeyed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retouch import EditSession, Region, RegionError
from retouch.bench import measure
from retouch.bundle import Bundle
from retouch.calibrate import block_region, calibrate, crossing, interleaved, sample_feeds
from retouch.calibrate._break_even import around_crossing
from retouch.engines.ort import OrtEngine


def test_crossing() -> None:
    assert crossing([(0.5, 0.8), (0.7, 1.2)]) == pytest.approx(0.6)
    assert crossing([(0.7, 1.2), (0.5, 0.8)]) == pytest.approx(0.6), "in any order"
    assert crossing([(0.3, 0.4), (1.0, 1.0)]) == pytest.approx(1.0)
    assert crossing([(0.4, 2.0)]) == pytest.approx(0.2)
    assert crossing([(0.3, 0.2), (1.0, 0.9)]) > 1


@pytest.mark.parametrize(
    ("ratios", "measured"),
    [
        ((0.3, 0.5, 0.7, 0.9, 1.1), {2, 3, 4}),
        ((0.3, 0.5, 0.7, 0.8, 0.9), {2, 3, 4}),
        ((0.5, 1.0, 1.2, 1.4, 2.0), {0, 1, 2}),
        ((1.5, 2.0, 2.5, 3.0, 3.5), {0, 2}),
        ((0.9,), {0}),
    ],
)
def test_what_lies_around_the_crossing_is_measured(ratios: tuple[float, ...], measured: set[int]) -> None:
    found = around_crossing(len(ratios), lambda number: ratios[number])
    assert found == {number: ratios[number] for number in measured}
    everything = [(number + 1.0, ratio) for number, ratio in enumerate(ratios)]
    assert crossing([everything[number] for number in found]) == pytest.approx(crossing(everything))


@pytest.mark.parametrize(("dims", "area", "rows"), [((8, 8), 0.25, 16), ((8, 8), 1.0, 64), ((100,), 0.1, 10)])
def test_block_region(dims: tuple[int, ...], area: float, rows: int) -> None:
    region = block_region(dims, area)
    assert region.mask.sum() == rows
    assert region.mask[tuple(dim // 2 for dim in dims)]


@pytest.mark.parametrize("area", [0, -0.1, 1.01, float("nan")])
def test_block_region_of_no_area(area: float) -> None:
    with pytest.raises(RegionError, match="above 0 and at most 1"):
        block_region((8, 8), area)


def test_actions_take_turns() -> None:
    calls: list[str] = []
    samples = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=2)
    assert calls == ["a", "b"] * 4
    assert set(samples) == {"a", "b"}
    calls.clear()
    interleaved({"a": lambda: calls.append("a")}, repeats=2, warm_ups=1, progress=calls.append)
    assert calls == ["warm up", "a", "round 1 of 2", "a", "round 2 of 2", "a"]


def test_calibrate_writes_the_manifest(hand_built: Any, tmp_path: Path) -> None:
    shutil.copytree(hand_built.bundle.path, tmp_path / "bundle")
    lines: list[str] = []
    measured = calibrate(tmp_path / "bundle", threads=1, repeats=1, progress=lines.append)
    again = Bundle.open(tmp_path / "bundle")
    assert again.manifest.break_even == {OrtEngine().name: measured}
    assert again.fingerprint == hand_built.bundle.fingerprint
    assert len(lines) == len(measured.points) >= 2
    assert [share for share, _ in measured.points] == sorted(share for share, _ in measured.points)
    with EditSession(again) as session:
        run = session.base(sample_feeds(again.manifest))
        report = session.edit(run, region=Region.full((8, 8))).report
        assert report.path == ("dense" if report.flop_ratio >= measured.flop_ratio else "edit")


def test_measurements(hand_built: Any) -> None:
    model = hand_built.bundle.path / "base.onnx"
    measured = measure(hand_built.bundle, [0.05, 1.0], repeats=1, original=model, feeds=hand_built.feeds())
    assert json.loads(json.dumps(measured)) == measured
    for row in measured:
        assert row["path"] == "edit"
        assert row["base_ms"] == min(row["bundle_ms"], row["original_ms"] or np.inf)
        assert row["ratio"] == pytest.approx(row["edit_ms"] / row["base_ms"])
        assert row["prep_ms"] > 0
        assert row["index_ms"] > 0
    assert [row["rows"]["fine"] for row in measured] == [4, 64]
    assert measured[1]["flop_ratio"] == pytest.approx(1.0, abs=1e-3)
