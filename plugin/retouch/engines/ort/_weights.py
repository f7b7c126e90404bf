"""How Retouch's kernels keep the weights that they pack."""

from __future__ import annotations

from enum import StrEnum

from retouch.errors import RetouchError


class WeightStorage(StrEnum):
    """How Retouch's kernels keep the weights of convolutions and matrix products; sums are float32 whatever it is.

    A small edit takes about as long as reading all weights does, and shorter ones are read faster. Rows outside of an
    edit stay as they are, bit for bit.
    """

    FLOAT32 = "float32"
    """As they are."""

    FLOAT16 = "float16"
    """Rounded to 11 binary digits, for weights of up to 65504; those of models in float16 lose nothing."""

    BFLOAT16 = "bfloat16"
    """Rounded to 8 binary digits, for weights of every size. CPUs with instructions for such numbers multiply them
    twice as fast, by rows that are rounded as well."""


def checked_weights(weights: str) -> WeightStorage:
    """The storage of that name."""
    try:
        return WeightStorage(weights)
    except ValueError:
        known = ", ".join(repr(str(storage)) for storage in WeightStorage)
        raise RetouchError(f"Expected weights to be kept as one of {known}, got {weights!r}.") from None
