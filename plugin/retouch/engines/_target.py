"""The libraries that run engines built ahead of time."""

from __future__ import annotations

import enum

__all__ = ["Target"]


class Target(enum.StrEnum):
    """An inference library that runs engines built ahead of time."""

    TENSORRT_RTX = "tensorrt-rtx"
    TENSORRT = "tensorrt"
    ORT = "ort"

    @property
    def module(self) -> str:
        """The Python package that builds for it."""
        return "onnxruntime" if self is Target.ORT else self.value.replace("-", "_")

    @property
    def majors(self) -> tuple[int, ...]:
        """The major versions that are known to work."""
        return {Target.TENSORRT_RTX: (1,), Target.TENSORRT: (10, 11), Target.ORT: (1,)}[self]

    @property
    def remedy(self) -> str:
        """How to get it."""
        return {
            Target.TENSORRT_RTX: 'pip install "retouch[trt]"',
            Target.TENSORRT: 'pip install "tensorrt-cu13>=10.13,<12"',
            Target.ORT: 'pip install "retouch[cpu]"',
        }[self]

    @property
    def builds_without_gpu(self) -> bool:
        """Whether engines are built on machines without a GPU; with ONNX Runtime that is up to its providers."""
        return self is not Target.TENSORRT
