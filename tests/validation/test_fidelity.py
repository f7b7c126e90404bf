"""The study of fidelity."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from retouch.export import ExportOptions, export_onnx
from retouch.region import POLICIES
from retouch.session import MOMENTS
from retouch.validation.fidelity import Sample, Study, draw_shift, markdown, run_study
from retouch.validation.psnr import Psnr
from retouch.validation.reference_models import terrain

STUDY = Study(terrains=2)


def _samples() -> list[Sample]:
    """PSNR inside tells noise level and terrain."""
    keys = product((0, 1), STUDY.sigmas, STUDY.sizes, ("pasted", "redrawn"), STUDY.policies, MOMENTS)
    return [
        Sample(kind, sigma, size, 0.1, policy, mode, Psnr(40 + 10 * terrain + sigma, 30.0, 50.0), kept=12.0)
        for terrain, sigma, size, kind, policy, mode in keys
    ]


def test_table_has_median_and_worst_of_every_edit() -> None:
    samples = _samples()
    assert len(samples) == len(STUDY)
    table = markdown(STUDY, samples)
    assert table.count("| pasted | 16x16 | 0.4 | 12.0 (12.0) |" + " 45.4 (40.4) |" * len(STUDY.policies)) == 2
    assert table.count("| redrawn |") == len(STUDY.sigmas) * len(STUDY.sizes) * len(MOMENTS)


def test_picture_is_written(tmp_path: Path) -> None:
    draw_shift(tmp_path / "shift.png", STUDY, _samples())
    assert (tmp_path / "shift.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_small_patches_of_the_trained_model_come_close_to_a_full_recomputation(tmp_path: Path) -> None:
    bundle = export_onnx(terrain(), tmp_path / "bundle", ExportOptions(verify=False))
    study = Study(terrains=2, sizes=(16,), policies={"balanced": POLICIES["balanced"]})
    samples = list(run_study(bundle, study, threads=2))
    assert len(samples) == len(study)
    for sigma in study.sigmas:
        redrawn = [s.psnr.inside for s in samples if (s.kind, s.sigma, s.group_norm) == ("redrawn", sigma, "cached")]
        assert np.median(redrawn) > 46
        kept = [s.kept for s in samples if s.sigma == sigma]
        assert max(kept) < 30
