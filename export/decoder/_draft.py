"""A decoder's graph under construction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec
from retouch.export.decoder._stored import StoredWeights
from retouch.export.node_builder import BindingTime, NodeBuilder
from retouch.export.ops import DOMAIN

__all__ = ["Draft"]


class Draft:
    """Adds what a decoder is made of: products, norms, splits.

    Attributes:
        spec: the model's shape.
        ids: the tokens [B, Q].
    """

    def __init__(self, spec: DecoderSpec, weights: StoredWeights, tokens: int | str = "tokens") -> None:
        """An empty graph.

        Args:
            spec: the model's shape.
            weights: its weights.
            tokens: number of tokens of a single text, or a name for any number, of any number of texts.
        """
        self.spec = spec
        self._weights = weights
        self._tokens = tokens
        self._texts: int | str = 1 if isinstance(tokens, int) else "batch"
        self._builder = NodeBuilder()
        self.ids = self.input("ids", (self._texts, tokens), ir.DataType.INT64)

    @property
    def positions(self) -> ir.Value:
        """The tokens' positions [B, Q]: an input, or counted if there is a fixed number of them."""
        if isinstance(self._tokens, int):
            return self.constant(np.arange(self._tokens, dtype=np.int64)[None])
        return self.input("positions", (self._texts, self._tokens), ir.DataType.INT64)

    @property
    def block(self) -> ir.Value:
        """Tokens of a block [1]."""
        return self.input("block", (1,), ir.DataType.INT64)

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

    def add(self, node: ir.Node) -> None:
        """Adds a node that was made elsewhere, such as a loop."""
        self._builder.add(node)

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

    def largest(self, x: ir.Value, count: int) -> tuple[ir.Value, ...]:
        """The largest values along the last axis, and where they are."""
        return self._builder.ops("TopK", (x, self.ints([count])), outputs=2)

    def smallest(self, x: ir.Value, count: ir.Value) -> ir.Value:
        """Where the smallest of values [N] are, so many of them."""
        return self._builder.ops("TopK", (x, count), {"largest": 0}, outputs=2)[1]

    def filled(self, number: float, like: ir.Value) -> ir.Value:
        """A number in the shape of another value."""
        return self.op("Expand", self.constant(np.array(number, np.float32)), self.op("Shape", like))

    def ints(self, values: Sequence[int]) -> ir.Value:
        """A constant int64 vector."""
        return self._builder.ints(values)

    def constant(self, array: NDArray[Any]) -> ir.Value:
        """A constant."""
        return self._builder.constant(array)

    def weight(self, name: str) -> ir.Value:
        """A weight as it is."""
        return self._initializer(self._weights.plain(name))

    def product(self, x: ir.Value, name: str) -> ir.Value:
        """``x`` [..., in] times a weight [out, in] transposed."""
        return self._linear(x, self._weights.transposed(name))

    def queries_keys_values(self, x: ir.Value, layer: int, *, values_only: bool = False) -> ir.Value:
        """The packed projection of rows, with its bias if there is one; or only its last part, the values."""
        spec = self.spec
        start = (spec.heads + spec.kv_heads) * spec.head_dim if values_only else 0
        packed = self._linear(x, self._weights.columns(f"{layer}.qkv", start))
        if not spec.biases:
            return packed
        return self.op("Add", packed, self._initializer(self._weights.columns(f"{layer}.qkv_bias", start)))

    def experts(self, layer: int, *kinds: str) -> ir.Value:
        """Matrices of a layer's experts [experts, in, out]."""
        assert self.spec.experts is not None
        return self._initializer(self._weights.experts(layer, kinds, self.spec.experts.count))

    def normed(self, x: ir.Value, name: str, scale: float = 1.0) -> ir.Value:
        """``x`` over its root mean square along the last axis, times a weight and a scale.

        Written as ONNX Runtime's fusion into one kernel recognises it.
        """
        square = self.op("Pow", x, self.constant(np.array(2, np.float32)))
        mean = self.op("ReduceMean", square, self.ints([-1]), keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.constant(np.array(self.spec.norm_epsilon, np.float32))))
        scaled = self.weight(name) if scale == 1 else self._initializer(self._weights.scaled(name, scale))
        return self.op("Mul", self.op("Div", x, root), scaled)

    def name(self, value: ir.Value, name: str, dtype: ir.DataType, shape: Sequence[int | str]) -> None:
        """Names and types what becomes an output."""
        value.name = name
        value.type = ir.TensorType(dtype)
        value.shape = ir.Shape(list(shape))

    def _linear(self, x: ir.Value, weight: ir.TensorProtocol) -> ir.Value:
        """``x`` [..., in] times a weight [in, out]; an operator of ours only where no exporter will read the graph."""
        ours = isinstance(self._tokens, str)
        operands = (x, self._initializer(weight))
        return self._builder.op("TokenLinear", operands, domain=DOMAIN) if ours else self.op("MatMul", *operands)

    def _initializer(self, tensor: ir.TensorProtocol) -> ir.Value:
        return self._builder.initializer(str(tensor.name), tensor)
