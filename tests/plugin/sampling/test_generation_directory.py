"""Generations on disk: what comes back is what was saved, and what does not fit is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retouch import Region, RunError, RunFileError, SamplingError
from retouch.sampling import Generation, Recording, TextToImage, read_generation_record

PIXELS = (16, 16)


@pytest.fixture(scope="module")
def base(pipeline: TextToImage) -> Generation:
    return pipeline.generate("a red circle", "green", steps=3, guidance=2.5, seed=5)


@pytest.fixture(scope="module")
def saved(base: Generation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "base.image"
    base.save(folder)
    return folder


def _same(one: Generation, other: Generation) -> None:
    assert one.image.tobytes() == other.image.tobytes()
    pairs = zip(one.trajectory.steps, other.trajectory.steps, strict=True)
    assert all(a.latents.tobytes() == b.latents.tobytes() for a, b in pairs)
    assert one.trajectory.latents.tobytes() == other.trajectory.latents.tobytes()


def test_edits_of_a_loaded_generation_are_those_of_the_saved_one(
    exported: Path, pipeline: TextToImage, base: Generation, saved: Path, region: Region
) -> None:
    expected = pipeline.edit(base, region, "a blue square")
    with TextToImage(exported, threads=1) as other:
        loaded = other.load(saved)
        _same(loaded, base)
        assert (loaded.prompt, loaded.negative_prompt) == ("a red circle", "green")
        assert (loaded.trajectory.seed, loaded.bytes) == (5, base.bytes)
        _same(other.edit(loaded, region, "a blue square"), expected)
        _same(other.edit(loaded, region, seed=8), pipeline.edit(base, region, seed=8))


def test_a_saved_edit_is_edited_further(
    exported: Path, pipeline: TextToImage, base: Generation, region: Region, tmp_path: Path
) -> None:
    first = pipeline.edit(base, region, "a blue square", strength=0.7, record=True)
    first.save(tmp_path / "first")
    elsewhere = Region.from_boxes([(10, 10, 16, 16)], PIXELS, "exact")
    expected = pipeline.edit(first, elsewhere, "a red square")
    with TextToImage(exported, threads=1) as other:
        loaded = other.load(tmp_path / "first")
        assert loaded.trajectory.region is not None and loaded.base is None
        np.testing.assert_array_equal(loaded.trajectory.region.mask, region.resampled((8, 8)).mask)
        _same(other.edit(loaded, elsewhere, "a red square"), expected)
        loaded.save(tmp_path / "again")
        _same(other.load(tmp_path / "again"), loaded)


def test_steps_without_states_stay_without(pipeline: TextToImage, tmp_path: Path) -> None:
    sparse = pipeline.generate("a red circle", steps=4, guidance=1.0, recording=Recording(stride=2))
    sparse.save(tmp_path / "sparse")
    loaded = pipeline.load(tmp_path / "sparse")
    assert loaded.trajectory.recorded == sparse.trajectory.recorded == (1, 3)
    assert loaded.trajectory.conditions.negative is None


def test_files_that_were_added_stay_with_the_generation(base: Generation, tmp_path: Path) -> None:
    for text in ("one", "two"):
        base.save(tmp_path / "base", extend=lambda folder, text=text: (folder / "image.png").write_text(text))
    assert (tmp_path / "base" / "image.png").read_text() == "two"
    for deep in ("steps/0001/0/mine.txt", "steps/0001/mine.txt"):
        (tmp_path / "base" / deep).touch()
        with pytest.raises(RunFileError, match=f"holds {deep} beside the directory of a generation"):
            base.save(tmp_path / "base")
        (tmp_path / "base" / deep).unlink()
    (tmp_path / "base" / "mine.txt").touch()
    with pytest.raises(RunFileError, match="directory of a generation"):
        base.save(tmp_path / "base")


def test_what_was_not_recorded_is_not_saved(
    pipeline: TextToImage, base: Generation, region: Region, tmp_path: Path
) -> None:
    for unrecorded in (
        pipeline.edit(base, region, "a blue square"),
        pipeline.generate("a red circle", steps=1, recording=Recording(last=0)),
    ):
        with pytest.raises(RunError, match="Expected a generation that was recorded"):
            unrecorded.save(tmp_path / "image")
    gone = pipeline.generate("a red circle", steps=1)
    gone.close()
    with pytest.raises(RunError, match="was dropped"):
        gone.save(tmp_path / "image")
    assert not (tmp_path / "image").exists()


def test_another_scheduler_or_model_is_refused(
    exported: Path, exported_tiny_pipeline: Any, saved: Path, region: Region
) -> None:
    other = TextToImage(exported, threads=1, scheduler="EulerDiscreteScheduler")
    with other, pytest.raises(SamplingError, match=r"3 of a DDIMScheduler, got those of a EulerDiscreteScheduler"):
        other.load(saved)
    with TextToImage(exported, threads=1, scheduler="DDIMScheduler") as same:
        assert same.load(saved).trajectory.schedule.steps == 3
    unknown = TextToImage(exported, threads=1, scheduler="Nothing")
    with unknown, pytest.raises(SamplingError, match="by name, like 'EulerDiscreteScheduler', got 'Nothing'"):
        unknown.load(saved)
    changed = TextToImage(exported_tiny_pipeline(2), threads=1)
    with changed, pytest.raises(RunError, match="another model, or other weights or adapters"):
        changed.load(saved)


def test_the_record_says_where_the_pipeline_is(exported: Path, saved: Path) -> None:
    record = read_generation_record(saved)
    assert record.pipeline_path(saved) == exported.resolve()
    assert (record.prompt, record.scheduler, record.steps, record.guidance) == (
        "a red circle", "DDIMScheduler", 3, 2.5,
    )  # fmt: skip


def test_damaged_directories_are_refused(pipeline: TextToImage, saved: Path, tmp_path: Path) -> None:
    def damaged(name: str) -> Path:
        return Path(shutil.copytree(saved, tmp_path / name))

    with pytest.raises(RunFileError, match=r"has no generation.json"):
        pipeline.load(tmp_path)
    cut = damaged("cut")
    (cut / "trajectory.safetensors").write_bytes((cut / "trajectory.safetensors").read_bytes()[:-1])
    with pytest.raises(RunFileError, match="bytes, got"):
        pipeline.load(cut)
    missing = damaged("missing")
    (missing / "image.npy").unlink()
    with pytest.raises(RunFileError, match="does not exist"):
        pipeline.load(missing)
    changes: dict[str, tuple[dict[str, Any], str]] = {
        "other": ({"schema_version": 0}, "generation.json"),
        "more": ({"more": 1}, "generation.json"),
        "files": ({"files": {}}, "generation.json"),
        "calls": ({"calls": [2, 2]}, "the calls of 3 steps, got 2"),
        "region": (
            {"policy": {"dilation": 0, "grid_dilation": 0, "dense_rows": 0}}, r"region of shape \(8, 8\), got none",
        ),
    }  # fmt: skip
    for name, (change, message) in changes.items():
        folder = damaged(name)
        record = json.loads((folder / "generation.json").read_text())
        (folder / "generation.json").write_text(json.dumps({**record, **change}))
        with pytest.raises(RunFileError, match=message):
            pipeline.load(folder)
