"""Squares are measured under every policy, and errors are those of edits."""

from __future__ import annotations

from pathlib import Path

from retouch.export import ExportOptions, export_onnx
from retouch.validation.reference_models import export_reference
from retouch.validation.squares import measure_squares


def test_squares_cost_and_err_by_policy(reference_models: Path, tmp_path: Path) -> None:
    model = export_reference("ddpm_unet_tiny", reference_models)
    bundle = export_onnx(model, tmp_path / "bundle", ExportOptions(verify=False))
    near, everything = measure_squares(bundle, model, [0.004, 1.0], ["5 pixels"], 1)
    (far,) = measure_squares(bundle, model, [0.004], ["SIGE"], 1)
    assert near.policy == "5 pixels" and far.policy == "SIGE"
    assert 0 < near.flop_ratio < far.flop_ratio <= 1.0
    assert min(near.ratio, near.stock_ratio, far.ratio, far.stock_ratio) > 0
    assert 1e-6 < near.error < 1
    assert 0.99 < everything.flop_ratio <= 1.0  # what is hoisted is in no edit
