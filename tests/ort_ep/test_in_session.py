"""The execution provider behind sessions: used unasked, named in the report, and left out on request."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from retouch import Bundle, EditSession, EngineMissingError, Result
from retouch.engines.ort import OrtEngine
from retouch.ort_ep import PROVIDER, register
from tests.ort_ep.small_bundle import REGION, export_small, feed

STOCK = ["CPUExecutionProvider"]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_small(tmp_path_factory.mktemp("small"))


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
    assert edited(bundle, None)[1].report.kernels == {}


def test_other_accelerators_are_not_mixed_with_the_kernels() -> None:
    with pytest.raises(EngineMissingError, match=f"Expected {PROVIDER} alone or with CPUExecutionProvider"):
        _ = OrtEngine([PROVIDER, "CUDAExecutionProvider"]).kernels
