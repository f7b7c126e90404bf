"""What generations and edits leave in a store: nothing, where they fail or are not recorded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from retouch import Region, RunError, RunFileError
from retouch.sampling import Generation, MissingStates, Progress, PromptEdit, Recording, TextToImage
from retouch.states import StateStore

PROMPT, OTHER = "a red circle", "a blue square"


def _ids(made: Generation) -> set[str]:
    assert made.decoded is not None
    return {run.id for step in made.trajectory.steps for run in step.runs} | {made.decoded.id}


def test_what_is_not_recorded_or_was_closed_takes_no_room(exported: Path) -> None:
    store = StateStore()
    with TextToImage(exported, threads=1, store=store) as pipeline:
        bare = pipeline.generate(PROMPT, steps=2, recording=Recording(last=0))
        assert store.ids() == () and bare.bytes == 0
        made = pipeline.generate(PROMPT, steps=2)
        assert set(store.ids()) == _ids(made) and 0 < made.bytes <= store.bytes
        made.close()
        assert store.ids() == () and made.bytes == 0


def test_edits_whose_decoding_fails_leave_nothing_behind(exported: Path, region: Region) -> None:
    store, told = StateStore(), list[Progress]()
    with TextToImage(exported, threads=1, store=store) as pipeline:
        base = pipeline.generate(PROMPT, steps=2, seed=5)
        decoded = base.decoded
        assert decoded is not None
        edits = [PromptEdit(region, OTHER), PromptEdit(region, seed=3)]
        with pytest.raises(RunError, match="was dropped"):
            pipeline.edit(base, region, OTHER, record=True, callback=lambda _: decoded.close())
        kept = _ids(base) - {decoded.id}
        assert set(store.ids()) == kept
        with pytest.raises(RunError, match="was dropped"):
            pipeline.edit_many(base, edits, callback=told.append)
        assert told == []
        again = pipeline.edit_many(base, edits, missing=MissingStates.RECOMPUTE)
        assert set(store.ids()) == kept and len(again) == 2
        assert pipeline.edit_many(base, [], missing=MissingStates.RECOMPUTE) == []


def test_a_generation_that_does_not_come_back_whole_leaves_nothing(exported: Path, tmp_path: Path) -> None:
    with TextToImage(exported, threads=1) as pipeline:
        base = pipeline.generate(PROMPT, steps=2)
        base.save(tmp_path / "whole")
        size = base.bytes
    shutil.copytree(tmp_path / "whole", tmp_path / "damaged")
    (tmp_path / "damaged" / "decoder" / "states.safetensors").write_bytes(b"")
    store = StateStore()
    with TextToImage(exported, threads=1, store=store) as pipeline:
        with pytest.raises(RunFileError, match="bytes, got 0"):
            pipeline.load(tmp_path / "damaged")
        assert store.ids() == ()
        loaded = pipeline.load(tmp_path / "whole")
        decoded = loaded.decoded
        assert decoded is not None and set(store.ids()) == _ids(loaded)
        decoded.close()
        with pytest.raises(RunFileError, match="bytes, got 0"):
            pipeline.load(tmp_path / "damaged")
        assert set(store.ids()) == _ids(loaded) - {decoded.id}
    small = StateStore(budget=size)
    with TextToImage(exported, threads=1, store=small) as pipeline:
        with pytest.raises(RunError, match="was evicted to keep the states within"):
            pipeline.load(tmp_path / "whole")
        assert small.ids() == ()
