"""The kernels, and what is made of them, compile for cards without a warning."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from tests.trt_plugins.host_kernels import KERNELS
from tests.trt_plugins.host_ort_ops import ort_headers
from tests.trt_plugins.host_plugins import tensorrt_headers

FUNCTIONS = (
    "gather_rows",
    "masked_merge",
    "scatter_rows",
    "edit_conv",
    "row_linear",
    "fill_slots",
    "edit_attention",
    "group_moments",
    "edit_group_norm",
)
LIBRARIES = {
    "kernels": ("KERNEL_LIBRARY", True, ()),
    "plugins": ("PLUGIN_LIBRARY", tensorrt_headers(), ("getCreators", "setLoggerFinder", "retouch_trt_describe")),
    "ort-ops": ("OPERATOR_LIBRARY", ort_headers(), ("RegisterCustomOps", "retouch_ort_describe")),
}


@pytest.mark.slow
@pytest.mark.parametrize("target", [target for target, (_, headers, _) in LIBRARIES.items() if headers])
def test_libraries_compile_for_a_card_without_a_warning(target: str, tmp_path: Path) -> None:
    variable, _, exported = LIBRARIES[target]
    environment = {**os.environ, "TENSORRT_INCLUDE_DIR": str(tensorrt_headers())}
    make = ["make", target, "KERNEL_CARDS=90", f"{variable}={tmp_path / 'library.so'}"]
    done = subprocess.run(make, cwd=KERNELS.parents[1], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    library = ctypes.CDLL(str(tmp_path / "library.so"))
    assert all(hasattr(library, name) for name in (*(f"retouch_{name}" for name in FUNCTIONS), *exported))
