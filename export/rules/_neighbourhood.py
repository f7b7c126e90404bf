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
from retouch.region import transposed_axis, window_axis

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = [
    "Window",
    "channels_last",
    "convolved_rows",
    "gather_rows",
    "grouping_neighbourhood",
    "local_rows",
    "spatial_rows",
    "splitting_neighbourhood",
    "transposed_neighbourhood",
    "weighted_rows",
    "window_neighbourhood",
]


class Window:
    """Kernel, strides, begin and end pads and dilations of a windowed operator, one entry per grid axis."""

    def __init__(self, node: ir.Node, kernel: tuple[int, ...]) -> None:
        rank = len(kernel)
        self.kernel = kernel
        self.strides = tuple(attribute(node, "strides", (1,) * rank))
        self.dilations = tuple(attribute(node, "dilations", (1,) * rank))
        pads = self._computed_pads(node) or tuple(attribute(node, "pads", (0,) * (2 * rank)))
        self.begins, self.ends = pads[:rank], pads[rank:]

    def _computed_pads(self, node: ir.Node) -> tuple[int, ...] | None:
        """The pads that follow from the sizes: ``auto_pad``, or ``output_shape`` of a transposed convolution."""
        auto_pad = attribute(node, "auto_pad", "NOTSET")
        if auto_pad == "VALID":
            return (0,) * (2 * len(self.kernel))
        if auto_pad == "NOTSET" and attribute(node, "output_shape") is None:
            return None
        sizes = zip(shape_of(node.inputs[0])[2:], shape_of(node.outputs[0])[2:], strict=True)
        extra = attribute(node, "output_padding", (0,) * len(self.kernel))
        totals = []
        for (n_in, n_out), k, s, d, e in zip(sizes, self.kernel, self.strides, self.dilations, extra, strict=True):
            reach = d * (k - 1) + 1
            transposed = node.op_type == "ConvTranspose"
            totals.append(max(s * (n_in - 1) + e + reach - n_out if transposed else s * (n_out - 1) + reach - n_in, 0))
        halves = tuple(total // 2 for total in totals)
        others = tuple(total - half for total, half in zip(totals, halves, strict=True))
        return (*halves, *others) if auto_pad == "SAME_UPPER" else (*others, *halves)

    @property
    def trivial(self) -> bool:
        """Whether every row reads itself only."""
        ones = (1,) * len(self.kernel)
        return self.kernel == ones and self.strides == ones and not any(self.begins) and not any(self.ends)


def is_level(grid: Grid) -> bool:
    """Whether neighbours along the axes of a grid are neighbours of a resolution level of the same extent."""
    if grid.picked is not None:
        return grid.picked.spans and is_level(grid.picked.grid)
    return grid.view is None and grid.joint is None


def spatial_rows(node: ir.Node, facts: Facts) -> Rows | str:
    """The rows of the first operand of a spatial operator, or why it has none on all its spatial axes."""
    rows, rank = facts.rows(node.inputs[0]), len(shape_of(node.inputs[0]))
    if rows is None:
        return "its first operand carries no rows"
    if rows.axes != tuple(range(2, rank)):
        return f"the grid lies on axes {list(rows.axes)}, not on the spatial ones"
    if rows.flat and len(rows.grid.dims) > 1:
        return f"it works on the grid {list(rows.grid.dims)} flattened to one axis"
    if not is_level(rows.grid):
        return "it works on rows that are not beside their neighbours: rolled, cut into windows, or a part of the grid"
    return rows


def convolved_rows(node: ir.Node, facts: Facts) -> list[Fact] | str:
    """The rows of a convolution's result, or why it cannot be computed on rows."""
    if not all(isinstance(facts.of(value), Invariant) for value in node.inputs[1:]):
        return "its kernel or bias depends on the editable input"
    found = facts.rows(node.inputs[0])
    pointwise = node.op_type == "Conv" and Window(node, shape_of(node.inputs[1])[2:]).trivial
    if pointwise and found is not None and found.axes == tuple(range(2, len(shape_of(node.inputs[0])))):
        return [found]
    rows = spatial_rows(node, facts)
    if isinstance(rows, str):
        return rows
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


def transposed_neighbourhood(window: Window, source: Grid, target: Grid) -> NeighbourhoodSpec:
    """The neighbourhood of a transposed convolution's window: which source row goes through which tap."""
    return _transposed(window.kernel, window.strides, window.begins, window.dilations, source, target)


def splitting_neighbourhood(factors: tuple[int, ...], source: Grid, target: Grid) -> NeighbourhoodSpec:
    """The coarser row of every row, and which of its finer rows that is."""
    rank = len(factors)
    return _transposed(factors, factors, (0,) * rank, (1,) * rank, source, target)


def grouping_neighbourhood(factors: tuple[int, ...], source: Grid, target: Grid) -> NeighbourhoodSpec:
    """The finer rows of every row, row-major."""
    parts = [
        tuple(map(tuple, window_axis(n_in, n_out, factor, factor)))
        for n_in, n_out, factor in zip(source.dims, target.dims, factors, strict=True)
    ]
    name = f"{source.id}_{target.id}_grouped{'x'.join(map(str, factors))}"
    return NeighbourhoodSpec(name, source.id, target.id, tuple(parts), None, (1,) * len(parts))


def _transposed(
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    begins: tuple[int, ...],
    dilations: tuple[int, ...],
    source: Grid,
    target: Grid,
) -> NeighbourhoodSpec:
    parts = [
        transposed_axis(n_in, n_out, k, s, p, d)
        for n_in, n_out, k, s, p, d in zip(source.dims, target.dims, kernel, strides, begins, dilations, strict=True)
    ]
    name = "_".join("x".join(map(str, values)) for values in (kernel, strides, begins, dilations))
    return NeighbourhoodSpec(
        f"{source.id}_{target.id}_transposed{name}",
        source.id,
        target.id,
        tuple(tuple(map(tuple, sources)) for sources, _ in parts),
        tuple(tuple(map(tuple, taps)) for _, taps in parts),
        kernel,
    )


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
