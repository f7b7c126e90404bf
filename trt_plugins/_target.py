"""What a bundle is built for."""

from __future__ import annotations

import enum

__all__ = ["Precision", "Target"]


class Target(enum.StrEnum):
    """An inference library that runs engines built ahead of time."""

    TENSORRT_RTX = "tensorrt-rtx"
    TENSORRT = "tensorrt"

    @property
    def module(self) -> str:
        """The Python package that builds for it."""
        return self.value.replace("-", "_")

    @property
    def majors(self) -> tuple[int, ...]:
        """The major versions that are known to work."""
        return {Target.TENSORRT_RTX: (1,), Target.TENSORRT: (10, 11)}[self]

    @property
    def remedy(self) -> str:
        """How to get it."""
        return {
            Target.TENSORRT_RTX: 'pip install "retouch[trt]"',
            Target.TENSORRT: 'pip install "tensorrt-cu13>=10.13,<12"',
        }[self]

    @property
    def builds_without_gpu(self) -> bool:
        """Whether engines are built on machines without a GPU."""
        return self is Target.TENSORRT_RTX


class Precision(enum.StrEnum):
    """In what an engine computes.

    Engines are strongly typed: they compute in the types that the bundle's graphs have. ``TF32`` lets products of
    float32 run on tensor cores, which round their factors to 10 bits of mantissa.
    """

    FLOAT32 = "float32"
    TF32 = "tf32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"

    @property
    def dtype(self) -> str:
        """The type of the graphs' numbers."""
        return "float32" if self is Precision.TF32 else self.value
