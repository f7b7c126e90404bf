"""What engines compute in."""

from __future__ import annotations

import enum

__all__ = ["Precision"]


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
