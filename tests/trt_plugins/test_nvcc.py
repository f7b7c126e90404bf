"""The kernels compile for cards without a warning."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from tests.trt_plugins.host_kernels import KERNELS

FUNCTIONS = (
    "gather_rows",
    "masked_merge",
    "edit_conv",
    "row_linear",
    "fill_slots",
    "edit_attention",
    "group_moments",
    "edit_group_norm",
)


@pytest.mark.slow
def test_kernels_compile_for_a_card_without_a_warning(tmp_path: Path) -> None:
    make = ["make", "kernels", "KERNEL_CARDS=90", f"KERNEL_LIBRARY={tmp_path / 'kernels.so'}"]
    done = subprocess.run(make, cwd=KERNELS.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    library = ctypes.CDLL(str(tmp_path / "kernels.so"))
    assert all(hasattr(library, f"retouch_{name}") for name in FUNCTIONS)
