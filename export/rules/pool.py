"""Average and maximum pooling over gathered neighbours."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from retouch.bundle import NeighbourhoodSpec
from retouch.export.lattice import Fact, Rows, Statistic
from retouch.export.model_shapes import attribute, shape_of
from retouch.export.rules._neighbourhood import (
    Window,
    channels_last,
    gather_rows,
    spatial_rows,
    weighted_rows,
    window_neighbourhood,
)
from retouch.export.rules._rule import rule
from retouch.export.rules.reduce_rows import emit_reduced_rows

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["AveragePool", "MaxPool"]


class _Pool:
    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """Rows of the grid of the result's resolution; a statistic if one window sees all of them."""
        rows = spatial_rows(node, facts)
        if isinstance(rows, str):
            return rows
        if len(node.outputs) > 1:
            return "its index output is used"
        if _sees_everything(node):
            return [Statistic()]
        return [Rows(facts.grids.get(shape_of(node.outputs[0])[2:]), rows.axes)]


@rule("AveragePool")
class AveragePool(_Pool):
    """A mean over the neighbours; where pads do not count, a sum weighted per row."""

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The mean of the gathered neighbours."""
        source, output = node.inputs[0], node.outputs[0]
        assert source is not None
        if _sees_everything(node):
            emit_reduced_rows(node, tuple(range(2, len(shape_of(source)))), graph)
            return
        spec = _neighbourhood(node, graph)
        layout = channels_last(output)
        if all(min(flat) >= 0 for axis in spec.sources for flat in axis):
            columns = gather_rows(graph, source, spec)
            result = graph.op("ReduceMean", [columns, graph.ints([1])], {"keepdims": 0})
        else:
            counted = "all" if attribute(node, "count_include_pad", 0) else "inner"
            counted += "x".join(map(str, _window(node).ends))
            spec = dataclasses.replace(spec, id=f"{spec.id}_mean_{counted}", weights=_weights(node, spec))
            result = weighted_rows(graph, source, spec)
        graph.set_rows(output, result, layout)


@rule("MaxPool")
class MaxPool(_Pool):
    """A maximum over the neighbours; pads are the lowest number."""

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The maximum of the gathered neighbours."""
        source, output = node.inputs[0], node.outputs[0]
        assert source is not None
        if _sees_everything(node):
            emit_reduced_rows(node, tuple(range(2, len(shape_of(source)))), graph)
            return
        columns = gather_rows(graph, source, _neighbourhood(node, graph), pad=-math.inf)
        result = graph.op("ReduceMax", [columns, graph.ints([1])], {"keepdims": 0})
        graph.set_rows(output, result, channels_last(output))


def _sees_everything(node: ir.Node) -> bool:
    """Whether the only window is the whole grid, as exporters write adaptive pooling to one position."""
    window, sizes = _window(node), shape_of(node.inputs[0])[2:]
    return window.kernel == sizes and not any((*window.begins, *window.ends)) and math.prod(sizes) > 1


def _neighbourhood(node: ir.Node, graph: EditGraph) -> NeighbourhoodSpec:
    before, after = graph.facts.rows(node.inputs[0]), graph.facts.rows(node.outputs[0])
    assert before is not None and after is not None
    return window_neighbourhood(_window(node), before.grid, after.grid)


def _window(node: ir.Node) -> Window:
    return Window(node, tuple(attribute(node, "kernel_shape")))


def _weights(node: ir.Node, spec: NeighbourhoodSpec) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """One over the number of positions a window counts, per axis."""
    window = _window(node)
    include = bool(attribute(node, "count_include_pad", 0))
    weights = []
    for axis, sources in enumerate(spec.sources):
        size = shape_of(node.inputs[0])[2 + axis]
        last = size + (window.ends[axis] if include else 0)
        first = -window.begins[axis] if include else 0
        at = np.arange(len(sources))[:, None] * window.strides[axis] - window.begins[axis]
        at = at + np.arange(window.kernel[axis])[None] * window.dilations[axis]
        counted = ((at >= first) & (at < last)).sum(axis=1)
        weights.append(tuple((1.0 / max(float(count), 1.0),) * window.kernel[axis] for count in counted))
    return tuple(weights)
