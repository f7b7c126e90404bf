"""Models that onnxsim has been over give the plans of the originals, and edits of them what those compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import onnxsim
import pytest

from retouch import EditSession, Region
from retouch.calibrate import sample_feeds
from retouch.export import ExportOptions, export_onnx
from retouch.validation.reference_models import export_reference
from tests.plan_shares import shares

MODELS = ["ddpm_unet_tiny", "dit_tiny", "llada_tiny", "unet2d_condition_tiny"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("variant", [{}, {"torchscript": True}], ids=["dynamo", "torchscript"])
def test_a_simplified_model(name: str, variant: dict[str, bool], tmp_path: Path, reference_models: Path) -> None:
    source = export_reference(name, reference_models, **variant)
    simplified, same = onnxsim.simplify(onnx.load(source))
    assert same
    path = tmp_path / "simplified.onnx"
    onnx.save(simplified, path)
    bundle = export_onnx(path, tmp_path / "bundle")
    original = export_onnx(source, tmp_path / "original", ExportOptions(verify=False))
    assert shares(bundle) == pytest.approx(shares(original), abs=0.01)
    manifest = bundle.manifest
    editable, dims = manifest.editable.input, manifest.grid(manifest.editable.grid).dims
    feeds = sample_feeds(manifest)
    changed = {editable: sample_feeds(manifest, seed=1)[editable]}
    stock = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    with EditSession(bundle, threads=1, group_norm="corrected") as session:
        run = session.base(feeds)
        edited = session.edit(run, changed, region=Region.full(dims), fallback=False).outputs
    for output, expected in zip(manifest.outputs, stock.run(None, {**feeds, **changed}), strict=True):
        np.testing.assert_allclose(edited[output.tensor.name], expected, atol=1e-4 * np.abs(expected).max())
