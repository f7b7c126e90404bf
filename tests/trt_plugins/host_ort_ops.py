"""The operators for ONNX Runtime with kernels that run on the host: headers from wherever they are found."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.trt_plugins.host_plugins import COMPILER, OPTIONS, ROOT

_NAME = "onnxruntime_cxx_api.h"
_BELOW = ("", "include", "include/onnxruntime", "usr/include/onnxruntime")
_FETCHED = ROOT.parent / "build" / "ort-headers" / "root"


def ort_headers() -> Path | None:
    """The folder of ONNX Runtime's C++ headers: one that is named, or the one that the Makefile fetched."""
    named = [Path(os.environ[name]) for name in ("ORT_INCLUDE_DIR", "ORT_ROOT") if os.environ.get(name)]
    folders = [place / below for place in (*named, _FETCHED) for below in _BELOW]
    return next((folder for folder in folders if (folder / _NAME).is_file()), None)


def compile_ort_ops(folder: Path, kernels: Path) -> Path:
    """The library of the operators, which claim to be the CPU provider's.

    Args:
        folder: where it goes.
        kernels: the library of the kernels.
    """
    target = folder / "libretouch_ort_host.so"
    sources = sorted(str(path) for path in (ROOT / "ort_ops").glob("*.cc"))
    own = ["-fPIC", "-shared", "-fvisibility=hidden", '-DRETOUCH_ORT_PROVIDER="CPUExecutionProvider"']
    linked = [str(kernels), f"-Wl,-rpath,{kernels.parent}"]
    command = [str(COMPILER), *OPTIONS, f"-isystem{ort_headers()}", *own, *sources, *linked, "-o", str(target)]
    subprocess.run(command, check=True)
    return target
