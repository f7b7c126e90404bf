"""The execution provider behind sessions: used unasked, named in the report, and left out on request."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from retouch import Bundle, EditSession, EngineMissingError, Result, Run, RunError
from retouch.engines.ort import OrtEngine
from retouch.ort_ep import PROVIDER, register
from retouch.states import StateStore
from tests.ort_ep.small_bundle import REGION, feed

STOCK = ["CPUExecutionProvider"]


def edited(bundle: Bundle, providers: list[str] | None) -> tuple[np.ndarray, Result]:
    with EditSession(bundle, providers, threads=1) as session:
        run = session.base(feed(0))
        return np.array(run.outputs["y"]), session.edit(run, feed(1), region=REGION, fallback=False)


def test_sessions_use_the_kernels_and_name_them(bundle: Bundle) -> None:
    base, ours = edited(bundle, None)
    stock = edited(bundle, STOCK)[1]
    assert ours.report.kernels == {"EditConv": 1, "EditConvSilu": 1, "RowLinearAdded": 1, "ScatterRows": 1}
    assert "kernels      EditConv: 1, EditConvSilu: 1, RowLinearAdded: 1, ScatterRows: 1" in str(ours.report)
    assert stock.report.kernels == {}
    assert (ours.report.engine, stock.report.engine) == ("onnxruntime.retouch", "onnxruntime.cpu")
    np.testing.assert_allclose(ours.outputs["y"], stock.outputs["y"], rtol=1e-4, atol=1e-5)
    (active,) = set(ours.report.active_rows.values())
    assert (ours.outputs["y"] == base).all(axis=(0, 1)).sum() == 16 * 16 - active


def test_edits_from_several_threads_give_the_same_bits(bundle: Bundle) -> None:
    expected = edited(bundle, None)[1].outputs["y"]
    with EditSession(bundle, threads=2) as session, ThreadPoolExecutor(4) as pool:
        run = session.base(feed(0))
        jobs = [pool.submit(session.edit, run, feed(1), region=REGION, fallback=False) for _ in range(24)]
        for job in jobs:
            np.testing.assert_array_equal(job.result().outputs["y"], expected)


def test_runs_are_released_while_other_threads_edit_from_them(bundle: Bundle) -> None:
    """Several sessions, several threads each, one store: a run that is dropped is used to its end, and gone after."""
    expected = edited(bundle, None)[1].outputs["y"]

    def edits(session: EditSession, run: Run) -> list[str]:
        outcomes = []
        for _ in range(12):
            try:
                result = session.edit(run, feed(1), region=REGION, fallback=False)
            except RunError:
                outcomes.append("gone")
                continue
            np.testing.assert_array_equal(result.outputs["y"], expected)
            outcomes.append("edited")
        return outcomes

    store = StateStore()
    with (
        EditSession(bundle, threads=1, store=store) as first,
        EditSession(bundle, threads=2, store=store) as second,
        ThreadPoolExecutor(4) as pool,
    ):
        for dropping in (first, second) * 2:
            run = first.base(feed(0))
            jobs = [pool.submit(edits, session, run) for session in (first, second, first, second)]
            dropping.drop(run)
            for job in jobs:
                outcomes = job.result()
                assert outcomes == sorted(outcomes)  # once it is gone it stays gone
        assert first.runs() == second.runs() == ()


def _edit_in_child(path: Path) -> np.ndarray:
    return np.array(edited(Bundle.open(path), None)[1].outputs["y"])


def test_a_process_forked_after_registering_has_the_kernels(bundle: Bundle) -> None:
    assert register()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        result = pool.apply_async(_edit_in_child, (bundle.path,)).get(timeout=60)
    np.testing.assert_array_equal(result, edited(bundle, None)[1].outputs["y"])


def test_the_kernels_can_be_required(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    assert edited(bundle, [PROVIDER])[1].report.kernels
    monkeypatch.setenv("RETOUCH_ORT_EP_LIBRARY", "/nowhere/lib.so")
    with pytest.raises(EngineMissingError, match=f"Expected {PROVIDER} to be available, but .*'/nowhere/lib.so'"):
        edited(bundle, [PROVIDER])
    report = edited(bundle, None)[1].report
    assert report.kernels == {}
    assert report.notes == ("on stock kernels alone: RETOUCH_ORT_EP_LIBRARY names '/nowhere/lib.so', which is no file",)
    assert edited(bundle, ["CPUExecutionProvider"])[1].report.notes == ()


def test_kernels_that_are_there_need_no_note(bundle: Bundle) -> None:
    assert edited(bundle, None)[1].report.notes == ()


def test_other_accelerators_are_not_mixed_with_the_kernels() -> None:
    with pytest.raises(EngineMissingError, match=f"Expected {PROVIDER} alone or with CPUExecutionProvider"):
        _ = OrtEngine([PROVIDER, "CUDAExecutionProvider"]).kernels
