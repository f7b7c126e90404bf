"""Diffusers' UNet and DiT at the sizes people use: everything heavy on rows, verification passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from retouch.export import export_onnx
from retouch.validation.reference_models import export_reference

pytest.importorskip("diffusers")

SIZES = {"ddpm_unet_64": (64, 64), "dit_256": (32, 32)}
"""Latents of the two sizes that are usual, one architecture each: graphs of either size have the same nodes."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_size(name: str, reference_models: Path, tmp_path: Path) -> None:
    bundle = export_onnx(export_reference(name, reference_models), tmp_path / "bundle")
    assert bundle.manifest.grid(bundle.manifest.editable.grid).dims == SIZES[name]
    assert bundle.manifest.coverage >= 0.99
    assert [row.op for row in bundle.manifest.plan if row.plan == "densified" and row.flops] == []
    assert set(bundle.manifest.verification) >= {"identity.cached", "masked_reference.cached", "all_rows"}
