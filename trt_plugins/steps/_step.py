"""What a step is, whatever its network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from retouch.trt_plugins.steps._keep import Keep

__all__ = ["Step", "Weights"]


class Weights:
    """Random weights by name, as large as keeps activations near one."""

    def __init__(self, torch: Any, device: str, dtype: Any) -> None:  # noqa: ANN401  (PyTorch is optional)
        self._torch = torch
        self._options = {"device": device, "dtype": dtype}
        self._generator = torch.Generator(device=device).manual_seed(0)
        self._made: dict[str, Any] = {}

    def matrix(self, name: str, rows: int, columns: int) -> Any:  # noqa: ANN401
        """A matrix [rows, columns] that multiplies ``columns`` numbers."""
        return self._get(name, (rows, columns), 1 / math.sqrt(columns))

    def vector(self, name: str, size: int) -> Any:  # noqa: ANN401
        """A small vector."""
        return self._get(name, (size,), 0.1)

    def gain(self, name: str, size: int) -> Any:  # noqa: ANN401
        """A vector of numbers near one."""
        return self._get(name, (size,), 0.1, 1.0)

    def _get(self, name: str, shape: tuple[int, ...], scale: float, offset: float = 0.0) -> Any:  # noqa: ANN401
        if name not in self._made:
            drawn = self._torch.randn(shape, generator=self._generator, **self._options)
            self._made[name] = drawn * scale + offset
        return self._made[name]


class Step(Protocol):
    """One evaluation of a network for one image."""

    @property
    def name(self) -> str:
        """The network."""

    @property
    def side(self) -> int:
        """Positions of the input's grid along each axis."""

    def input(self, seed: int) -> Any:  # noqa: ANN401
        """A random input [side * side, channels]."""

    def dense(self, x: Any, keep: Keep) -> Any:  # noqa: ANN401
        """The result for all rows, in PyTorch."""

    def prepared(self, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a base run kept, and what follows from that and from conditions, which edits share."""

    def place(self, active: Any) -> Any:  # noqa: ANN401
        """What edits of some positions need to know: row numbers and tables, made once per region.

        Args:
            active: mask [side, side] as a numpy array.
        """

    def masks(self, place: Any) -> Mapping[int, Any]:  # noqa: ANN401
        """Which rows are active, by the number of rows of a grid."""

    def edit(self, x: Any, kept: Mapping[str, Any], place: Any) -> Any:  # noqa: ANN401
        """The result at the active rows, by the kernels.

        Args:
            x: the active rows of the input.
            kept: what a base run kept.
            place: the region.
        """
