"""``retouch doctor``: what is installed, and how to get what is not."""

from __future__ import annotations

import importlib
import platform

from rich.console import Console
from rich.table import Table

_PACKAGES = {
    "onnxruntime": 'pip install "retouch[cpu]" (or "retouch[gpu]")',
    "onnx": "pip install retouch",
    "onnx_ir": "pip install retouch",
    "onnxscript": "pip install retouch",
    "torch": 'pip install "retouch[torch]"',
    "diffusers": 'pip install "retouch[models]"',
    "tensorrt_rtx": 'pip install "retouch[trt]"',
    "polygraphy": 'pip install "retouch[validate]"',
    "matplotlib": 'pip install "retouch[demo]"',
}


def doctor() -> None:
    """Lists engines, execution providers and versions, and how to get what is missing."""
    console = Console()
    table = Table("package", "version", "if you need it")
    for name, remedy in _PACKAGES.items():
        version = _version(name)
        table.add_row(name, version or "missing", "" if version else remedy)
    console.print(f"Python {platform.python_version()} on {platform.machine()}")
    console.print(table)
    if _version("onnxruntime"):
        runtime = importlib.import_module("onnxruntime")
        console.print(f"ONNX Runtime execution providers: {', '.join(runtime.get_available_providers())}")


def _version(name: str) -> str | None:
    try:
        module = importlib.import_module(name)
    except ImportError:
        return None
    return str(getattr(module, "__version__", "installed"))
