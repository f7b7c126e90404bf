"""The reference families, tiny: everything heavy on rows, verification passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from retouch.export import ExportOptions, export_onnx
from retouch.validation.reference_models import export_reference


@pytest.mark.parametrize("name", ["ddpm_unet_tiny", "dit_tiny", "llada_tiny", "unet2d_condition_tiny"])
def test_family(name: str, reference_models: Path, tmp_path: Path) -> None:
    bundle = export_onnx(export_reference(name, reference_models), tmp_path / "bundle")
    assert bundle.manifest.coverage >= 0.99
    for check, error in bundle.manifest.verification.items():
        assert error <= (2e-5 if check == "all_rows" else 5e-6), check


def test_bundles_carry_no_traces_of_the_exporting_machine(reference_models: Path, tmp_path: Path) -> None:
    bundle = export_onnx(export_reference("dit_tiny", reference_models), tmp_path / "bundle")
    for graph in bundle.path.glob("*.onnx"):
        content = graph.read_bytes()
        assert b"site-packages" not in content
        assert b"Traceback" not in content
        assert b'File "/' not in content


def test_positions_of_the_wrong_axis_are_refused(reference_models: Path, tmp_path: Path) -> None:
    from retouch.errors import CoverageError

    model = export_reference("dit_tiny", reference_models)
    with pytest.raises(CoverageError, match="computed on rows"):
        export_onnx(model, tmp_path / "bundle", ExportOptions(editable="x", axes=(1,)))
    assert not (tmp_path / "bundle").exists()
