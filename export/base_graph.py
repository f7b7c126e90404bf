"""Adds the cacheable outputs to the base graph."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from retouch.export.analysis import Facts
from retouch.export.emit import Cacheable
from retouch.export.layout import GRID
from retouch.export.model_shapes import dtype_of, shape_of

__all__ = ["add_cacheables"]


def add_cacheables(model: ir.Model, cacheables: Iterable[Cacheable], facts: Facts) -> None:
    """Appends ``cacheable.<id>`` outputs to a cleaned-up model, in place.

    Requires: the model has the values that the cacheables name, with the same shapes.
    """
    graph = model.graph
    values = {value.name: value for node in graph for value in node.outputs}
    values.update({value.name: value for value in graph.inputs})
    builder = _Appender(graph)
    for cacheable in cacheables:
        value = values[cacheable.value.name]
        made = builder.moments(value, cacheable) if cacheable.groups else builder.rows(value, cacheable, facts)
        output = builder.add("Identity", [made], f"cacheable.{cacheable.spec.id}")
        output.type = ir.TensorType(ir.DataType.FLOAT if cacheable.groups else dtype_of(value))
        output.shape = ir.Shape(cacheable.spec.shape)
        graph.outputs.append(output)


class _Appender:
    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self.count = 0

    def add(
        self, op_type: str, inputs: list[ir.Value], name: str | None = None, **attributes: int | list[int]
    ) -> ir.Value:
        self.count += 1
        name = name or f"cacheable_node_{self.count}"
        node = ir.Node("", op_type, inputs, ir.convenience.convert_attributes(attributes), name=name)
        node.outputs[0].name = name
        self.graph.append(node)
        return node.outputs[0]

    def ints(self, values: Iterable[int]) -> ir.Value:
        self.count += 1
        tensor = ir.Tensor(np.array(list(values), dtype=np.int64), name=f"cacheable_constant_{self.count}")
        value = ir.Value(
            name=tensor.name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape), const_value=tensor
        )
        self.graph.register_initializer(value)
        return value

    def rows(self, value: ir.Value, cacheable: Cacheable, facts: Facts) -> ir.Value:
        rows = facts.rows(cacheable.value)
        assert rows is not None
        front = [axis for unit in cacheable.layout for axis in (rows.axes if unit == GRID else (unit,))]
        perm = [*front, *(axis for axis in range(len(shape_of(value))) if axis not in front)]
        if perm != sorted(perm):
            value = self.add("Transpose", [value], perm=perm)
        return self.add("Reshape", [value, self.ints(cacheable.spec.shape)])

    def moments(self, value: ir.Value, cacheable: Cacheable) -> ir.Value:
        """Mean and variance of every group, accumulated in float32."""
        _, batch, groups = cacheable.spec.shape
        grouped = self.add("Reshape", [value, self.ints([batch, groups, -1])])
        if dtype_of(value) != ir.DataType.FLOAT:
            grouped = self.add("Cast", [grouped], to=int(ir.DataType.FLOAT))
        mean = self.add("ReduceMean", [grouped, self.ints([2])], keepdims=1)
        centred = self.add("Sub", [grouped, mean])
        variance = self.add("ReduceMean", [self.add("Mul", [centred, centred]), self.ints([2])], keepdims=0)
        mean = self.add("Squeeze", [mean, self.ints([2])])
        parts = [self.add("Unsqueeze", [part, self.ints([0])]) for part in (mean, variance)]
        return self.add("Concat", parts, axis=0)
