"""What edits cost together and one by one is of the same edits."""

from __future__ import annotations

from pathlib import Path

import pytest

from retouch import EditSession, RetouchError
from retouch.export import ExportOptions, export_onnx
from retouch.validation.reference_models import export_reference
from retouch.validation.stacks import measure_stack


def test_both_ways_are_timed_and_agree(reference_models: Path, tmp_path: Path) -> None:
    model = export_reference("ddpm_unet_tiny", reference_models)
    with EditSession(export_onnx(model, tmp_path / "bundle", ExportOptions(verify=False)), threads=1) as session:
        found = measure_stack(session, count=3, area=0.004, repeats=1)
        assert found.together.cpu_ms > 0 and found.alone.cpu_ms > 0
        assert found.ratio == found.together.cpu_ms / found.alone.cpu_ms
        assert 0 <= found.largest_error < 5e-6
        assert session.runs() == ()
        with pytest.raises(RetouchError, match=r"Expected 3 edits to share a run, got: .*does not pay"):
            measure_stack(session, count=3, area=0.5, repeats=1)
        assert session.runs() == ()
