"""Weights in the forms in which graphs hold them, none of them in memory for longer than it takes to write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.export.decoder._weights import DecoderWeights

__all__ = ["StoredWeights"]

_Array = NDArray[np.float32]


class StoredWeights:
    """Tensors that are computed from a model's weights whenever they are asked for; all graphs share them."""

    def __init__(self, weights: DecoderWeights) -> None:
        self._weights = weights
        self._made: dict[str, ir.TensorProtocol] = {}

    def plain(self, name: str) -> ir.TensorProtocol:
        """A weight as it is."""
        return self._lazy(name, self._weights.shape(name), lambda: self._weights(name))

    def transposed(self, name: str) -> ir.TensorProtocol:
        """A matrix as products take it, [in, out]."""
        return self._lazy(f"{name}.transposed", self._weights.shape(name)[::-1], lambda: self._weights(name).T)

    def scaled(self, name: str, scale: float) -> ir.TensorProtocol:
        """A weight times a number."""
        return self._lazy(f"{name}.scaled", self._weights.shape(name), lambda: self._weights(name) * np.float32(scale))

    def columns(self, name: str, start: int) -> ir.TensorProtocol:
        """The last outputs of a matrix [in, out], or of a bias."""
        *rest, size = self._weights.shape(name)[::-1]
        return self._lazy(f"{name}.from_{start}", (*rest, size - start), lambda: self._weights(name)[start:].T)

    def experts(self, layer: int, kinds: Sequence[str], count: int) -> ir.TensorProtocol:
        """Matrices of a layer's experts [experts, in, out], several kinds of them beside each other."""
        shapes = [self._weights.shape(f"{layer}.{kind}.0") for kind in kinds]
        width, shape = sum(shape[0] for shape in shapes), (count, shapes[0][1], sum(shape[0] for shape in shapes))

        def filled() -> _Array:
            stack = np.empty((count, shapes[0][1], width), np.float32)
            for expert in range(count):
                end = 0
                for kind, (size, _) in zip(kinds, shapes, strict=True):
                    stack[expert, :, end : end + size] = self._weights(f"{layer}.{kind}.{expert}").T
                    end += size
            return stack

        return self._lazy(f"{layer}.{'_'.join(kinds)}", shape, filled)

    def _lazy(self, name: str, shape: Sequence[int], make: Callable[[], _Array]) -> ir.TensorProtocol:
        if name not in self._made:
            self._made[name] = ir.LazyTensor(
                lambda: ir.Tensor(np.ascontiguousarray(make()), name=name),
                ir.DataType.FLOAT,
                ir.Shape(list(shape)),
                name=name,
            )
        return self._made[name]
