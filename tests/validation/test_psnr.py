"""The measure of fidelity."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.region import Region
from retouch.validation.psnr import measure_psnr


def test_psnr_tells_inside_ring_and_beyond_apart() -> None:
    region = Region.from_boxes([(20, 20, 24, 24)], shape=(64, 64))
    error = np.full((1, 1, 64, 64), 0.002, dtype=np.float32)
    error[..., 12:32, 12:32] = 0.02
    error[..., 20:24, 20:24] = 0.2
    psnr = measure_psnr(error, np.zeros_like(error), region, peak=2.0)
    assert (psnr.inside, psnr.near, psnr.outside) == pytest.approx((20.0, 40.0, 60.0), abs=1e-3)


def test_psnr_of_equal_outputs_is_finite_and_of_nothing_infinite() -> None:
    output = np.ones((1, 8, 8), dtype=np.float32)
    psnr = measure_psnr(output, output, Region.full((8, 8)), peak=2.0)
    assert psnr.inside > 120
    assert psnr.near == psnr.outside == float("inf")
