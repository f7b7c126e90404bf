"""The only import of onnxruntime, made when an engine opens its first graph."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType

from retouch.errors import EngineMissingError

DEFAULT_PROVIDER = "CPUExecutionProvider"
DEFAULT_DEVICE = "cpu"

_DEVICES = {
    "CUDAExecutionProvider": "cuda",
    "NvTensorRTRTXExecutionProvider": "cuda",
    "TensorrtExecutionProvider": "cuda",
}

_TENSORRT_HINT = (
    " TensorrtExecutionProvider is linked to one major version of TensorRT (onnxruntime-gpu 1.31: libnvinfer.so.10), "
    "and `pip install tensorrt` may bring another: install `tensorrt-cu13<11` for it, in an environment of its own."
)
_HOW_TO_INSTALL = (
    'Install it with `pip install "retouch[cpu]"`, or `pip install "retouch[gpu]"` for an NVIDIA GPU; '
    "the two share one import name, so install only one of them."
)


def load_onnxruntime() -> ModuleType:
    """The onnxruntime module."""
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        raise EngineMissingError(
            f"Expected the package onnxruntime to run a bundle, got {error}. {_HOW_TO_INSTALL}"
        ) from error


def device_of(provider: str) -> str:
    """The device on which a provider keeps its tensors, as onnxruntime names it."""
    return _DEVICES.get(provider, DEFAULT_DEVICE)


def _hint(missing: Sequence[str]) -> str:
    return _TENSORRT_HINT if "TensorrtExecutionProvider" in missing else ""


def require_providers(wanted: Sequence[str], available: Sequence[str], when: str) -> None:
    """Raise an EngineMissingError if a provider that was asked for is not available."""
    missing = [provider for provider in wanted if provider not in available]
    if missing:
        raise EngineMissingError(
            f"Expected the execution provider {', '.join(missing)} {when}, got only {', '.join(available)}. "
            f"Ask for one of these, or install an onnxruntime that has it. {_HOW_TO_INSTALL}{_hint(missing)}"
        )
