"""Edits that come again run as captured graphs of CUDA, and give what they gave before."""

from __future__ import annotations

import pytest

from retouch import EditSession, Region
from retouch.bundle import Bundle
from tests.trt_plugins import fake_runtime
from tests.trt_plugins.fake_cuda import FakeCuda
from tests.trt_plugins.runner.cases import ENGINE, FEEDS, OTHER, SMALL


def test_an_edit_that_comes_again_is_captured_once_and_launched(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        wanted = ["execute_async_v3", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphLaunch"]
        seen, notes = [], []
        for factor in range(4):
            card.calls.clear()
            notes.append(session.edit(run, {"x": OTHER * factor}, region=SMALL).report.notes)
            seen.append([name for name in card.names() if name in wanted])
        assert seen[0][-1] == "execute_async_v3"
        assert seen[1] == ["cudaStreamBeginCapture", "execute_async_v3", "cudaStreamEndCapture", "cudaGraphLaunch"]
        assert seen[2] == seen[3] == ["cudaGraphLaunch"]
        (launched,) = {call[-1] for call in card.calls if call[0] == "cudaGraphLaunch"}
        assert next(call for call in card.calls if call[0] == "cudaStreamSynchronize") == (
            "cudaStreamSynchronize",
            launched,
        )
        assert ["launched as a captured graph" in note for note in notes] == [False, True, True, True]


def test_runs_that_cannot_be_captured_are_started_call_by_call(
    built: Bundle, stock: EditSession, card: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = fake_runtime.Context.execute_async_v3

    def refuse(self: fake_runtime.Context, stream: int) -> bool:
        return stream not in card.captures and execute(self, stream)

    monkeypatch.setattr(fake_runtime.Context, "execute_async_v3", refuse)
    with EditSession(built, engine=ENGINE) as session:
        ours, theirs = session.base(FEEDS), stock.base(FEEDS)
        for number in range(4):
            feed = {"x": OTHER * (number + 1)}
            got = session.edit(ours, feed, region=SMALL)
            expected = stock.edit(theirs, feed, region=SMALL, fallback=False)
            assert got.outputs["y"].tobytes() == expected.outputs["y"].tobytes()
            said = [note for note in got.report.notes if "could not be captured: tensorrt-rtx refuses a run" in note]
            assert len(said) == (number > 0)
        assert card.names().count("cudaStreamBeginCapture") == card.names().count("cudaStreamEndCapture") == 1


def test_captured_edits_give_what_others_give(built: Bundle, stock: EditSession, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        ours, theirs = session.base(FEEDS), stock.base(FEEDS)
        kept = []
        for number in range(8):  # two regions in turn, each of which gets a context for its captured run
            region = SMALL if number % 2 else Region.from_boxes([(9, 9, 11, 12)], shape=(16, 16), policy="exact")
            feed = {"x": OTHER * (number + 1)}
            kept.append(
                (session.edit(ours, feed, region=region), stock.edit(theirs, feed, region=region, fallback=False))
            )
        launched = ["launched as a captured graph" in got.report.notes for got, _ in kept]
        assert not any(launched[:3]) and all(launched[-2:])
        for got, expected in kept:
            assert got.outputs["y"].tobytes() == expected.outputs["y"].tobytes()


def test_contexts_with_captured_edits_are_few(built: Bundle, stock: EditSession, card: FakeCuda) -> None:
    """More regions than contexts: the one that comes back last finds its graph given up, and is right all the same."""
    regions = [Region.from_boxes([(at, 2, at + 3, 5)], shape=(16, 16), policy="exact") for at in range(6)]
    with EditSession(built, engine=ENGINE) as session:
        ours, theirs = session.base(FEEDS), stock.base(FEEDS)
        for region in (*regions, *regions):
            for _ in range(3):
                got = session.edit(ours, {"x": OTHER}, region=region)
            expected = stock.edit(theirs, {"x": OTHER}, region=region, fallback=False)
            assert got.outputs["y"].tobytes() == expected.outputs["y"].tobytes()
            assert "launched as a captured graph" in got.report.notes
        slots = session._opened().engine._slots
        idle = [slot.profile for name in slots for slot in slots[name]._idle if name.startswith("engines/")]
        assert max(idle.count(profile) for profile in set(idle)) <= 4 * len(slots)
        assert sum(slot.captured is not None for name in slots for slot in slots[name]._idle) == 4
