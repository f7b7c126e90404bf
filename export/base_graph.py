"""Adds the cacheable outputs to the base graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir as ir

from retouch.export.analysis import Facts
from retouch.export.edit_inputs import Cacheable
from retouch.export.layout import GRID
from retouch.export.model_shapes import constant_value, dtype_of, shape_of
from retouch.export.ops import DOMAIN, add_functions

__all__ = ["add_cacheables"]

_LONGEST_RUN = 512


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
        if cacheable.groups:
            output = builder.moments(value, cacheable)
        elif cacheable.spec.grid is None:
            output = builder.add("Identity", [value], f"cacheable.{cacheable.spec.id}")
        else:
            output = builder.rows(value, cacheable, facts)
        output.type = ir.TensorType(ir.DataType.FLOAT if cacheable.groups else dtype_of(value))
        output.shape = ir.Shape(cacheable.spec.shape)
        graph.outputs.append(output)
    add_functions(model)


class _Appender:
    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self.count = 0

    def add(
        self,
        op_type: str,
        inputs: list[ir.Value],
        name: str | None = None,
        *,
        domain: str = "",
        perm: Sequence[int] = (),
    ) -> ir.Value:
        self.count += 1
        name = name or f"cacheable_node_{self.count}"
        attributes = ir.convenience.convert_attributes({"perm": list(perm)} if perm else {})
        node = ir.Node(domain, op_type, inputs, attributes, name=name)
        node.outputs[0].name = name
        self.graph.append(node)
        return node.outputs[0]

    def ints(self, values: Iterable[int]) -> ir.Value:
        return self.constant(np.array(list(values), dtype=np.int64))

    def constant(self, array: np.ndarray) -> ir.Value:
        self.count += 1
        value = constant_value(f"cacheable_constant_{self.count}", array)
        self.graph.register_initializer(value)
        return value

    def rows(self, value: ir.Value, cacheable: Cacheable, facts: Facts) -> ir.Value:
        """The value in the kept layout; the transpose comes last, so that it writes the output itself."""
        rows = facts.rows(cacheable.value)
        assert rows is not None
        shape, name = shape_of(value), f"cacheable.{cacheable.spec.id}"
        front = [axis for unit in cacheable.layout for axis in (rows.axes if unit == GRID else (unit,))]
        first, last = rows.axes[0], rows.axes[-1]
        if rows.axes != tuple(range(first, last + 1)):
            perm = [*(axis for axis in range(len(shape)) if axis not in front), *front]
            value = self.add("Transpose", [value], perm=perm)
            return self.add("Reshape", [value, self.ints(cacheable.spec.shape)], name)
        place = {axis if axis not in rows.axes else GRID: axis for axis in reversed(front)}
        units = sorted(cacheable.layout, key=lambda unit: place[unit])
        order = [units.index(unit) for unit in cacheable.layout]
        sizes = [cacheable.spec.shape[cacheable.layout.index(unit)] for unit in units]
        if order == sorted(order):
            return self.add("Reshape", [value, self.ints(sizes)], name)
        return self.add("Transpose", [self.add("Reshape", [value, self.ints(sizes)])], name, perm=order)

    def moments(self, value: ir.Value, cacheable: Cacheable) -> ir.Value:
        """Mean and variance of every group."""
        _, batch, groups = cacheable.spec.shape
        run = _run_length(math.prod(shape_of(value)) // (batch * groups))
        runs = self.ints([batch, groups, -1, run])
        return self.add("GroupMoments", [value, runs], f"cacheable.{cacheable.spec.id}", domain=DOMAIN)


def _run_length(count: int) -> int:
    """The largest divisor of a count that float32 sums well."""
    return max(length for length in range(1, min(count, _LONGEST_RUN) + 1) if count % length == 0)
