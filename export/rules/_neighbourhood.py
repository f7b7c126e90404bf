"""Row neighbourhoods of windowed operators, and reading the rows they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from retouch.bundle import NeighbourhoodSpec
from retouch.export.lattice import Fact, Grid, Invariant, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import attribute, dtype_of, shape_of
from retouch.export.rules._rule import RETOUCH_DOMAIN
from retouch.region import window_axis

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = [
    "Window",
    "channels_last",
    "convolved_rows",
    "gather_rows",
    "local_rows",
    "spatial_rows",
    "weighted_rows",
    "window_neighbourhood",
    "window_of",
]


class Window:
    """Kernel, strides, begin and end pads and dilations of a windowed operator, one entry per grid axis."""

    def __init__(self, node: ir.Node, kernel: tuple[int, ...]) -> None:
        rank = len(kernel)
        self.kernel = kernel
        self.strides = tuple(attribute(node, "strides", (1,) * rank))
        self.dilations = tuple(attribute(node, "dilations", (1,) * rank))
        pads = tuple(attribute(node, "pads", (0,) * (2 * rank)))
        self.begins, self.ends = pads[:rank], pads[rank:]

    @property
    def trivial(self) -> bool:
        """Whether every row reads itself only."""
        ones = (1,) * len(self.kernel)
        return self.kernel == ones and self.strides == ones and not any(self.begins) and not any(self.ends)


def window_of(node: ir.Node, kernel: tuple[int, ...]) -> Window | str:
    """The node's window, or why it cannot be read off."""
    pad_mode = attribute(node, "auto_pad", "NOTSET")
    if pad_mode not in ("NOTSET", "VALID"):
        return f"auto_pad {pad_mode} is not supported; convert it to explicit pads"
    return Window(node, kernel)


def spatial_rows(node: ir.Node, facts: Facts) -> Rows | str:
    """The rows of the first operand of a spatial operator, or why it has none on all its spatial axes."""
    rows, rank = facts.rows(node.inputs[0]), len(shape_of(node.inputs[0]))
    if rows is None:
        return "its first operand carries no rows"
    if rows.axes != tuple(range(2, rank)):
        return f"the grid lies on axes {list(rows.axes)}, not on the spatial ones"
    return rows


def convolved_rows(node: ir.Node, facts: Facts) -> list[Fact] | str:
    """The rows of a convolution's result, or why it cannot be computed on rows."""
    rows = spatial_rows(node, facts)
    if isinstance(rows, str):
        return rows
    if not all(isinstance(facts.of(value), Invariant) for value in node.inputs[1:]):
        return "its kernel or bias depends on the editable input"
    window = window_of(node, shape_of(node.inputs[1])[2:])
    if isinstance(window, str):
        return window
    return [Rows(facts.grids.get(shape_of(node.outputs[0])[2:]), rows.axes)]


def channels_last(value: ir.Value) -> Layout:
    """Rows, batch unless it is one, channels: the layout of windowed operators."""
    return (GRID, 1) if shape_of(value)[0] == 1 else (GRID, 0, 1)


def window_neighbourhood(window: Window, source: Grid, target: Grid) -> NeighbourhoodSpec:
    """The neighbourhood of a window."""
    parts = [
        tuple(map(tuple, window_axis(n_in, n_out, k, s, p, d)))
        for n_in, n_out, k, s, p, d in zip(
            source.dims, target.dims, window.kernel, window.strides, window.begins, window.dilations, strict=True
        )
    ]
    text = "x".join(map(str, window.kernel))
    text += "".join(
        f"_{letter}{'x'.join(map(str, values))}"
        for letter, values, usual in (("s", window.strides, 1), ("p", window.begins, 0), ("d", window.dilations, 1))
        if any(value != usual for value in values)
    )
    name = f"{source.id}_{target.id}_k{text}"
    return NeighbourhoodSpec(name, source.id, target.id, tuple(parts), None, (1,) * len(parts))


def gather_rows(graph: EditGraph, value: ir.Value, spec: NeighbourhoodSpec, pad: float = 0.0) -> ir.Value:
    """The rows [M, T, (batch,) channels] that a neighbourhood names, channels last."""
    layout = channels_last(value)
    return graph.op(
        "GatherRows",
        [*local_rows(graph, value, layout, spec, pad), graph.neighbours(spec)],
        domain=RETOUCH_DOMAIN,
        dtype=dtype_of(value),
    )


def weighted_rows(graph: EditGraph, value: ir.Value, spec: NeighbourhoodSpec) -> ir.Value:
    """The weighted sums [M, (batch,) channels] of the rows that a neighbourhood names."""
    columns = gather_rows(graph, value, spec)
    behind = range(2, 1 + len(channels_last(value)))
    weights = graph.op("Unsqueeze", [graph.neighbour_weights(spec), graph.ints(list(behind))])
    if dtype_of(value) != ir.DataType.FLOAT:
        weights = graph.op("Cast", [weights], {"to": int(dtype_of(value))})
    return graph.op("ReduceSum", [graph.op("Mul", [columns, weights]), graph.ints([1])], {"keepdims": 0})


def local_rows(
    graph: EditGraph, value: ir.Value, layout: Layout, spec: NeighbourhoodSpec, pad: float
) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
    """What a neighbourhood reads from: active rows, cached tensor, halo index and the pad row."""
    shape = tuple(1 if axis == GRID else shape_of(value)[axis] for axis in layout)
    row = graph.constant(np.full(shape, pad, dtype=dtype_of(value).numpy()))
    return graph.rows_in(value, layout), graph.cached(value, layout), graph.halo(spec), row
