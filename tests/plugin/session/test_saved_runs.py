"""Runs that went to disk and back: their edits are those of the live run, bit for bit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retouch import EditSession, Region, RunError, RunFileError
from retouch.bundle import BreakEven, Bundle
from retouch.engines.ort import OrtEngine
from retouch.states import read_record

PATCH = Region.from_boxes([(2, 3, 5, 6)], (8, 8), "exact")


def session(bundle: Any, mode: Any = "corrected") -> EditSession:
    return EditSession(bundle, threads=1, group_norm=mode)


def dense(bundle: Bundle) -> Bundle:
    return Bundle(bundle.path, bundle.manifest.replace(break_even={OrtEngine().name: BreakEven("o", 1, 0.0)}))


@pytest.fixture
def saved(hand_built: Any, tmp_path: Path) -> Path:
    with session(hand_built.bundle) as live:
        live.base(hand_built.feeds(0)).save(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("mode", ["cached", "corrected"])
@pytest.mark.parametrize("fallback", [False, True])
def test_edits_of_a_loaded_run_are_those_of_the_live_one(
    hand_built: Any, tmp_path: Path, mode: Any, fallback: bool
) -> None:
    bundle = dense(hand_built.bundle)
    change = hand_built.feeds(1, sigma=0.8)
    with session(bundle, mode) as live:
        run = live.base(hand_built.feeds(0))
        run.save(tmp_path / "run")
        expected = live.edit(run, change, region=PATCH, record=True, fallback=fallback)
        following = live.edit(expected.commit(), {"x": -change["x"]}, region=PATCH, fallback=fallback)
        with session(bundle, mode) as other:
            again = other.load_run(tmp_path / "run")
            assert again.id == run.id
            assert other.runs() == (run.id,)
            for got, kept in ((again.feeds, run.feeds), (again.outputs, run.outputs)):
                assert {name: array.tobytes() for name, array in got.items()} == {
                    name: array.tobytes() for name, array in kept.items()
                }
            assert {key: value.digest for key, value in again.states.items()} == {
                key: value.digest for key, value in run.states.items()
            }
            result = other.edit(again, change, region=PATCH, record=True, fallback=fallback)
            assert result.report.path == expected.report.path == ("dense" if fallback else "edit")
            assert np.array_equal(result.outputs["y"], expected.outputs["y"])
            assert not np.array_equal(result.outputs["y"], again.outputs["y"])
            next_one = other.edit(result.commit(), {"x": -change["x"]}, region=PATCH, fallback=fallback)
            assert np.array_equal(next_one.outputs["y"], following.outputs["y"])


def test_commits_can_be_saved(hand_built: Any, saved: Path, tmp_path: Path) -> None:
    change = hand_built.feeds(1)
    with session(hand_built.bundle) as live:
        result = live.edit(live.load_run(saved), change, region=PATCH)
        result.commit().save(tmp_path / "next")
    with session(hand_built.bundle) as other:
        assert np.array_equal(other.load_run(tmp_path / "next").outputs["y"], result.outputs["y"])


def test_a_run_that_is_kept_is_not_loaded_again(hand_built: Any, saved: Path) -> None:
    with session(hand_built.bundle) as live:
        first = live.load_run(saved)
        assert live.load_run(saved).states["x"] is first.states["x"]
        live.drop(first)
        assert live.load_run(saved).states["x"] is not first


def test_other_bundles_refuse_it(otherwise_weighted: Any, saved: Path) -> None:
    message = "Expected a run of bundle .* was made with bundle"
    with session(otherwise_weighted.bundle) as live, pytest.raises(RunError, match=message):
        live.load_run(saved)


def test_bundle_is_found_after_both_moved(hand_built: Any, tmp_path: Path) -> None:
    shutil.copytree(hand_built.bundle.path, tmp_path / "one" / "b")
    with session(tmp_path / "one" / "b") as live:
        live.base(hand_built.feeds()).save(tmp_path / "one" / "runs" / "r")
    (tmp_path / "one").rename(tmp_path / "two")
    directory = tmp_path / "two" / "runs" / "r"
    assert read_record(directory).bundle_path(directory) == tmp_path / "two" / "b"


def test_dropped_and_unrecorded_runs_are_not_saved(hand_built: Any, tmp_path: Path) -> None:
    with session(hand_built.bundle) as live:
        with pytest.raises(RunError, match="record=True"):
            live.base(hand_built.feeds(), record=False).save(tmp_path / "run")
        run = live.base(hand_built.feeds())
        live.drop(run)
        with pytest.raises(RunError, match="was dropped"):
            run.save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_lacks_a_feed_is_refused(hand_built: Any, saved: Path) -> None:
    """What a record lists is checked against the bundle as well: hashes only say that the files are the record's."""
    record = json.loads((saved / "run.json").read_text())
    (file,) = record["outputs"].values()
    del record["outputs"]["y"], record["files"][file]
    (saved / "run.json").write_text(json.dumps(record))
    with session(hand_built.bundle) as live, pytest.raises(RunFileError, match="to have outputs y, got none"):
        live.load_run(saved)


def test_preloaded_graphs_are_those_that_runs_use(hand_built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    load = OrtEngine.open

    def spy(self: OrtEngine, graph: Path, *rest: Any) -> Any:
        opened.append(graph.name)
        return load(self, graph, *rest)

    monkeypatch.setattr(OrtEngine, "open", spy)
    with session(hand_built.bundle) as live:
        live.preload()
        assert sorted(opened) == ["base.onnx", "edit_corrected.onnx", "prep.onnx", "prep.onnx"]
        live.edit(live.base(hand_built.feeds(0)), hand_built.feeds(1), region=PATCH)
        assert len(opened) == 4
    opened.clear()
    with session(hand_built.bundle) as live:
        live.preload(base=False)
        assert sorted(opened) == ["edit_corrected.onnx", "prep.onnx", "prep.onnx"]
