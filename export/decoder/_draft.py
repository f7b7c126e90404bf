"""A decoder's graph under construction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec
from retouch.export.decoder._weights import DecoderWeights
from retouch.export.node_builder import BindingTime, NodeBuilder

__all__ = ["Draft"]


class Draft:
    """Adds what a decoder is made of: products, norms, splits.

    Attributes:
        spec: the model's shape.
        ids: the tokens [B, Q].
        positions: their positions [B, Q].
        block: tokens of a block [1].
    """

    def __init__(self, spec: DecoderSpec, weights: DecoderWeights) -> None:
        self.spec = spec
        self._weights = weights
        self._builder = NodeBuilder()
        self.ids = self.input("ids", ("batch", "tokens"), ir.DataType.INT64)
        self.positions = self.input("positions", ("batch", "tokens"), ir.DataType.INT64)
        self.block = self.input("block", (1,), ir.DataType.INT64)

    @property
    def inputs(self) -> list[ir.Value]:
        """The inputs so far."""
        return self._builder.inputs

    @property
    def nodes(self) -> list[ir.Node]:
        """The nodes so far."""
        return self._builder.nodes

    @property
    def initializers(self) -> list[ir.Value]:
        """The weights and constants so far."""
        return list(self._builder.initializers.values())

    def input(self, name: str, shape: Sequence[int | str], dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Value:
        """The input of that name."""
        return self._builder.input(name, dtype, shape, BindingTime.EDIT)

    def op(self, op_type: str, *inputs: ir.Value | None, **attributes: float | str | Sequence[int]) -> ir.Value:
        """The only output of a node."""
        return self._builder.op(op_type, inputs, attributes)

    def split(self, x: ir.Value, axis: int, sizes: Sequence[int]) -> tuple[ir.Value, ...]:
        """The parts of a value along an axis."""
        parts = self._builder.ops("Split", (x, self.ints(sizes)), {"axis": axis}, outputs=len(sizes))
        return tuple(part for part, size in zip(parts, sizes, strict=True) if size)

    def ints(self, values: Sequence[int]) -> ir.Value:
        """A constant int64 vector."""
        return self._builder.ints(values)

    def constant(self, array: NDArray[np.float32] | NDArray[np.int64]) -> ir.Value:
        """A constant."""
        return self._builder.constant(array)

    def weight(self, name: str) -> ir.Value:
        """A weight as it is."""
        return self._stored(name, self._weights(name))

    def product(self, x: ir.Value, name: str) -> ir.Value:
        """``x`` [..., in] times a weight [out, in] transposed."""
        return self.op("MatMul", x, self._stored(f"{name}.transposed", self._weights(name).T))

    def normed(self, x: ir.Value, name: str, scale: float = 1.0) -> ir.Value:
        """``x`` over its root mean square along the last axis, times a weight and a scale.

        Written as ONNX Runtime's fusion into one kernel recognises it.
        """
        square = self.op("Pow", x, self.constant(np.array(2, np.float32)))
        mean = self.op("ReduceMean", square, self.ints([-1]), keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.constant(np.array(self.spec.norm_epsilon, np.float32))))
        weight = self._weights(name)
        scaled = self.weight(name) if scale == 1 else self._stored(f"{name}.scaled", weight * np.float32(scale))
        return self.op("Mul", self.op("Div", x, root), scaled)

    def name(self, value: ir.Value, name: str, dtype: ir.DataType, shape: Sequence[int | str]) -> None:
        """Names and types what becomes an output."""
        value.name = name
        value.type = ir.TensorType(dtype)
        value.shape = ir.Shape(list(shape))

    def _stored(self, name: str, array: NDArray[np.float32]) -> ir.Value:
        return self._builder.initializer(name, ir.Tensor(np.ascontiguousarray(array), name=name))
