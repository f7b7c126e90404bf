"""Graphs in half precision, as ONNX Runtime's converter writes them: casts at the edges, nodes in any order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.transformers.float16 import convert_float_to_float16

from retouch.calibrate import sample_feeds
from retouch.export import export_onnx
from retouch.region import Region
from retouch.session import EditSession
from retouch.validation.reference_models import export_reference

POOLED = """
<ir_version: 10, opset_import: ["" : 18]>
pooled (float16[1,4,8,8] x) => (float16[1,4,8,8] y) {
    share0 = Constant<value = float {0.015625}>()
    share = Cast<to = 10>(share0)
    mean = GlobalAveragePool(x)
    gate = Sigmoid(mean)
    a = Mul(x, gate)
    k = Relu(a)
    sums = Einsum<equation = "bchw,bdhw->bcd">(k, a)
    few = Mul(sums, share)
    y = Einsum<equation = "bchw,bcd->bdhw">(k, few)
}
"""
MODELS = ["ddpm_unet_tiny", "dit_tiny", "llada_tiny"]
HALF = float(np.finfo(np.float16).eps)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("keep_edges", [True, False])
def test_half_precision_edits_agree_with_the_model_within_its_rounding(
    name: str, keep_edges: bool, tmp_path: Path, reference_models: Path
) -> None:
    half = convert_float_to_float16(onnx.load(export_reference(name, reference_models)), keep_io_types=keep_edges)
    path = tmp_path / "half.onnx"
    onnx.save(half, path)
    bundle = export_onnx(path, tmp_path / "bundle")
    manifest = bundle.manifest
    assert manifest.coverage > 0.99
    assert "float16" in {spec.dtype for spec in manifest.cacheables}
    feeds, changed = sample_feeds(manifest), sample_feeds(manifest, seed=1)
    editable = manifest.editable.input
    feeds_after = {**feeds, editable: changed[editable]}
    stock = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    region = Region.full(manifest.grid(manifest.editable.grid).dims)
    with EditSession(bundle, threads=1, group_norm="corrected") as session:
        run = session.base(feeds)
        result = session.edit(run, {editable: changed[editable]}, region=region, fallback=False)
    for output, expected in zip(manifest.outputs, stock.run(None, feeds_after), strict=True):
        got = result.outputs[output.tensor.name]
        assert got.dtype == expected.dtype
        scale = float(np.abs(expected).max())
        assert float(np.abs(got.astype(np.float32) - expected).max()) < 8 * HALF * scale


def test_sums_over_rows_are_kept_in_the_models_precision(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(POOLED), tmp_path / "model.onnx")
    manifest = export_onnx(tmp_path / "model.onnx", tmp_path / "bundle").manifest
    assert {row.plan for row in manifest.plan} == {"incremental", "statistic"}
    assert {spec.dtype for spec in manifest.cacheables} == {"float16"}
    assert max(manifest.verification.values()) < 8 * HALF
