"""Sessions on engines, against sessions on ONNX Runtime: CUDA's calls and TensorRT's runtime are played on the host."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from retouch import EditSession, Region
from retouch.bundle import Bundle
from retouch.calibrate import calibrate
from retouch.engines import Target
from retouch.engines.ort import OrtEngine
from retouch.engines.tensorrt import TensorRtEngine
from retouch.errors import EngineError, FeedError
from retouch.session import EditRequest
from retouch.trt_plugins import BuildOptions, build
from tests.trt_plugins import fake_runtime
from tests.trt_plugins.fake_cuda import FakeCuda
from tests.trt_plugins.runner.cases import ENGINE, FEEDS, LARGE, MEDIUM, OTHER, SMALL, STEP, X, installed


def test_runs_edits_and_commits_are_those_of_onnx_runtime(built: Bundle, stock: EditSession, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        for record in (False, True):
            results = []
            for one in (session, stock):
                run = one.base(FEEDS)
                edit = one.edit(run, {"x": OTHER}, region=SMALL, record=record)
                following = one.edit(edit.commit(), {"step": STEP * 2}, region=MEDIUM)
                results.append((run, edit, following))
            ours, theirs = results
            for got, expected in zip(ours, theirs, strict=True):
                assert got.outputs["y"].tobytes() == expected.outputs["y"].tobytes()
            assert {n: v.numpy().tobytes() for n, v in ours[0].states.items()} == {
                n: v.numpy().tobytes() for n, v in theirs[0].states.items()
            }
        report = ours[1].report
        assert (report.path, report.engine, report.threads) == ("edit", ENGINE, 1)
        assert report.active_rows == theirs[1].report.active_rows
        assert "profile 1 of 2, made for 16 rows" in report.notes
        assert "made for 16 rows" in str(report)
    assert "cudaMemPoolSetAttribute" in card.names()


def test_values_that_a_session_made_are_neither_copied_nor_compared(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        step = session.values({"step": STEP})
        run = session.base({"x": X, **step})
        expected = session.edit(run, {"x": OTHER, "step": STEP}, region=SMALL)
        card.calls.clear()
        got = session.edit(run, {"x": OTHER, **step}, region=SMALL)
        assert got.outputs["y"].tobytes() == expected.outputs["y"].tobytes()
        copied = {call[1:3] for call in card.calls if call[0] == "cudaMemcpyAsync"}
        assert ("DeviceToDevice", STEP.nbytes) not in copied and ("DeviceToHost", STEP.nbytes) not in copied
    with EditSession(built, engine=ENGINE) as other:  # whose engine has a memory of its own
        again = other.base({"x": X, **step})
        assert again.outputs["y"].tobytes() == run.outputs["y"].tobytes()


def test_states_stay_on_the_card(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        session.edit(run, {"x": OTHER}, region=SMALL)
        card.calls.clear()
        session.edit(run, {"x": OTHER * 2}, region=SMALL)
        copied = [call for call in card.calls if call[0] == "cudaMemcpyAsync"]
        assert {call[1]: sum(c[2] for c in copied if c[1] == call[1]) for call in copied} == {
            "HostToDevice": X.nbytes,
            "DeviceToDevice": X.nbytes,
            "DeviceToHost": X.nbytes,
        }
        assert run.bytes > X.nbytes


def test_a_region_takes_the_next_profile_or_a_full_run(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        assert "profile 2 of 2, made for 100 rows" in session.edit(run, {"x": OTHER}, region=MEDIUM).report.notes
        result = session.edit(run, {"x": OTHER}, region=LARGE)
        assert result.report.path == "dense"
        assert "no profile of the engine (made for 16, 100 rows) takes the region" in result.report.reason
        with pytest.raises(EngineError, match="takes the edit, but no profile .*--profile rows=all"):
            session.edit(run, {"x": OTHER}, region=LARGE, fallback=False)


def test_a_run_that_fails_does_not_spoil_the_next(
    built: Bundle, stock: EditSession, card: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        with monkeypatch.context() as patch:
            patch.setattr(fake_runtime.Context, "execute_async_v3", lambda *_: False)
            with pytest.raises(EngineError, match="tensorrt-rtx refuses a run of (prep|edit).onnx: no message"):
                session.edit(run, {"x": OTHER}, region=SMALL)
        result = session.edit(run, {"x": OTHER}, region=SMALL)
        expected = stock.edit(stock.base(FEEDS), {"x": OTHER}, region=SMALL, fallback=False)
        assert result.outputs["y"].tobytes() == expected.outputs["y"].tobytes()


def test_states_of_commits_do_not_leave_the_card(built: Bundle, stock: EditSession, card: FakeCuda) -> None:
    scattered = np.zeros((16, 16), bool)
    scattered[[0, 3, 3, 8], [5, 1, 2, 15]] = True
    with EditSession(built, engine=ENGINE) as session:
        ours, theirs = session.base(FEEDS), stock.base(FEEDS)
        for region in (SMALL, Region.from_mask(scattered, "exact")):
            edit = session.edit(ours, {"x": OTHER}, region=region, record=True)
            before = stock.edit(theirs, {"x": OTHER}, region=region, record=True)
            card.calls.clear()
            got, expected = edit.commit(), before.commit()
            down = [call[2] for call in card.calls if call[:2] == ("cudaMemcpyAsync", "DeviceToHost")]
            assert sum(down) == 0
            for name, value in got.states.items():
                assert np.allclose(value.numpy(), expected.states[name].numpy(), rtol=0, atol=1e-5), name


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("rows", [[], [0], [5], [1, 2, 3], [0, 2, 3, 5], [4, 1, 2]])
@pytest.mark.parametrize("most", [0, 1024])
def test_rows_are_merged_and_taken_on_the_card(
    built: Bundle, card: FakeCuda, axis: int, rows: list[int], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retouch.engines.tensorrt._rows._MOST_COPIES", most)
    engine, host = TensorRtEngine(built, Target.TENSORRT_RTX), OrtEngine()
    generator = np.random.default_rng(axis)
    numbers = np.array(rows, np.int64)
    shape = [2, 3, 4]
    shape[axis] = 6
    base = generator.standard_normal(shape).astype(np.float32)
    shape[axis] = len(rows)
    update = generator.standard_normal(shape).astype(np.float32)
    expected = base.copy()
    np.moveaxis(expected, axis, 0)[numbers] = np.moveaxis(update, axis, 0)
    for on in (engine, host):
        assert np.array_equal(on.merged(on.value(base), on.value(update), numbers, axis).numpy(), expected)
        assert np.array_equal(on.taken(on.value(base), numbers, axis).numpy(), base.take(numbers, axis))


def test_break_evens_are_measured_on_engines(built: Bundle, card: FakeCuda, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(built.path, copy)
    with pytest.raises(EngineError, match="takes the edit, but no profile"):
        calibrate(copy, engine=ENGINE, repeats=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retouch.trt_plugins._build.compile_graph", fake_runtime.compiled)
        patch.delitem(sys.modules, "tensorrt_rtx")
        build(copy, BuildOptions(Target.TENSORRT_RTX, rows=("16", "all")))
    measured = calibrate(copy, engine=ENGINE, repeats=1)
    assert Bundle.open(copy).manifest.break_even == {ENGINE: measured}
    with EditSession(copy, engine=ENGINE) as session:
        report = session.edit(session.base(FEEDS), {"x": OTHER}, region=SMALL).report
        assert "break-even" in report.reason and "no break-even" not in report.reason


def test_several_edits_run_one_by_one_where_no_stacked_engine_was_built(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        results = session.edit_many(run, [EditRequest(SMALL, {"x": OTHER}), EditRequest(SMALL, {"x": OTHER * 2})])
        reasons = [result.report.reason for result in results]
        assert all("on its own: " in reason for reason in reasons), reasons


def test_states_move_to_the_host_when_the_card_is_full(
    built: Bundle, stock: EditSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = installed(monkeypatch, FakeCuda())
    with EditSession(built, engine=ENGINE) as session:
        runs = [session.base({"x": X * factor, "step": STEP}) for factor in (1, 2)]
        session.edit(runs[1], {"x": OTHER}, region=SMALL)
        card.capacity = card.used + 1000
        runs.append(session.base({"x": X * 3, "step": STEP}))
        assert not any(value.on_device for value in runs[0].states.values())
        assert all(value.on_device for value in runs[2].states.values())
        for factor, run in enumerate(runs, 1):
            result = session.edit(run, {"x": OTHER}, region=SMALL)
            if factor == 1:
                assert any("memory was full" in note and "moved to host memory" in note for note in result.report.notes)
            expected = stock.edit(stock.base({"x": X * factor, "step": STEP}), {"x": OTHER}, region=SMALL)
            assert result.outputs["y"].tobytes() == expected.outputs["y"].tobytes()


def test_a_card_that_is_too_small_says_so(built: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, FakeCuda(capacity=20_000))
    with EditSession(built, engine=ENGINE) as session, pytest.raises(EngineError, match="MiB of the memory of Fake 40"):
        session.base(FEEDS)


def test_memory_is_given_back_with_runs_and_sessions(built: Bundle, card: FakeCuda) -> None:
    session = EditSession(built, engine=ENGINE)
    run = session.base(FEEDS)
    session.edit(run, {"x": OTHER}, region=SMALL)
    before = card.used
    session.base(FEEDS).close()
    assert card.used == before
    session.drop(run)
    assert card.used < before
    session.close()
    del session, run
    assert card.used == 0
    assert len(card.queues) == 1  # what is left is the stream that memory was given back on


def test_threads_run_beside_each_other(built: Bundle, stock: EditSession, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run, theirs = session.base(FEEDS), stock.base(FEEDS)
        got: dict[int, bytes] = {}

        def work(number: int) -> None:
            for _ in range(3):
                got[number] = session.edit(run, {"x": OTHER * number}, region=SMALL).outputs["y"].tobytes()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(4):
            expected = stock.edit(theirs, {"x": OTHER * number}, region=SMALL, fallback=False)
            assert got[number] == expected.outputs["y"].tobytes()


def test_tensors_of_other_libraries_come_and_go_without_the_host(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        expected = session.base(FEEDS)
        x, other = (torch.from_numpy(card.holds(array.copy())) for array in (X, OTHER))
        card.calls.clear()
        run = session.base({"x": x, "step": STEP})
        uploads = [call[2] for call in card.calls if call[:2] == ("cudaMemcpyAsync", "HostToDevice")]
        assert uploads == [STEP.nbytes]
        assert run.outputs["y"].tobytes() == expected.outputs["y"].tobytes()
        result = session.edit(run, {"x": other}, region=SMALL)
        for read in (torch.from_dlpack, np.from_dlpack):
            taken = read(result.values["y"])
            assert np.array_equal(np.asarray(taken), result.outputs["y"])
        assert taken.__array_interface__["data"][0] in card.blocks
        for wrong, message in (
            (torch.from_numpy(card.holds(X[..., 1:].copy())), "of shape"),
            (torch.from_numpy(card.holds(X.astype(np.float64))), "convert it there"),
            (torch.zeros(1, 4, 16, 32)[..., ::2], "Make it contiguous"),
            (torch.zeros(1, 4, 16, 16, requires_grad=True), "detach"),
        ):
            with pytest.raises(FeedError, match=message):
                session.edit(run, {"x": wrong}, region=SMALL)
        with pytest.raises(FeedError, match="missing 'step'"):
            session.base({"x": x})
