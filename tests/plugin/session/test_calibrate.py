"""The measured break-even lands in the manifest, and the session obeys it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retouch.bench import measure
from retouch.bundle import Bundle
from retouch.calibrate import calibrate
from retouch.engines.ort import OrtEngine
from retouch.export import ExportOptions, export_onnx
from retouch.validation.reference_models import export_reference


def test_calibrate_and_measure(reference_models: Path, tmp_path: Path) -> None:
    model = export_reference("ddpm_unet_tiny", reference_models)
    bundle = export_onnx(model, tmp_path / "bundle", ExportOptions(verify=False))
    measured = calibrate(bundle.path, threads=1, repeats=1)
    again = Bundle.open(bundle.path)
    assert again.manifest.break_even[OrtEngine().name].flop_ratio == measured.flop_ratio
    assert again.fingerprint == bundle.fingerprint
    (row,) = measure(bundle.path, [0.1], threads=1)
    assert row["path"] in ("edit", "dense")
    assert np.isclose(row["ratio"], row["edit_ms"] / row["base_ms"])
