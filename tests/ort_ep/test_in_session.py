"""The execution provider behind sessions: used unasked, named in the report, and left out on request."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest

from retouch import Bundle, EditSession, EngineMissingError, Region, Result
from retouch.engines.ort import OrtEngine
from retouch.export.pipeline import export_onnx
from retouch.ort_ep import PROVIDER, register

STOCK = ["CPUExecutionProvider"]
MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
small (float[1,3,16,16] x) => (float[1,3,16,16] y) {
    a = Conv<pads = [1, 1, 1, 1]>(x, k3, b3)
    s = Sigmoid(a)
    g = Mul(a, s)
    h = Conv(g, k1)
    t = Add(g, h)
    y = Conv<pads = [1, 1, 1, 1]>(t, k2)
}
"""
REGION = Region.from_boxes([(3, 4, 8, 9)], shape=(16, 16))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(0)
    shapes = {"k3": (24, 3, 3, 3), "b3": (24,), "k1": (24, 24, 1, 1), "k2": (3, 24, 3, 3)}
    model = onnx.parser.parse_model(MODEL)
    for name, shape in shapes.items():
        weight = rng.standard_normal(shape).astype(np.float32) / np.float32(5)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    onnx.save(model, folder / "small.onnx")
    return export_onnx(folder / "small.onnx", folder / "small.bundle")


def feed(seed: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((1, 3, 16, 16)).astype(np.float32)}


def edited(bundle: Bundle, providers: list[str] | None) -> tuple[np.ndarray, Result]:
    with EditSession(bundle, providers, threads=1) as session:
        run = session.base(feed(0))
        return np.array(run.outputs["y"]), session.edit(run, feed(1), region=REGION, fallback=False)


def test_sessions_use_the_kernels_and_name_them(bundle: Bundle) -> None:
    base, ours = edited(bundle, None)
    stock = edited(bundle, STOCK)[1]
    assert ours.report.kernels == {"EditConv": 1, "EditConvSilu": 1, "MaskedMerge": 1, "RowLinearAdded": 1}
    assert "kernels      EditConv: 1, EditConvSilu: 1, MaskedMerge: 1, RowLinearAdded: 1" in str(ours.report)
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
