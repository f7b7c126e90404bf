"""GroupNorm: moments of the base run, or those moments corrected by what the active rows changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from retouch.export.lattice import Fact
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import attribute, dtype_of, shape_of
from retouch.export.ops.tails import BATCH, NORM, STACKED_NORM
from retouch.export.rules._rule import RETOUCH_DOMAIN, rule

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["GroupNorm", "emit_whole"]


@rule("GroupNorm", domain=RETOUCH_DOMAIN)
class GroupNorm:
    """``GroupNorm(x)``, canonicalised by clean-up: normalises over a group of channels and all rows, without affine."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The same rows."""
        rows, rank = facts.rows(node.inputs[0]), len(shape_of(node.inputs[0]))
        if rows is None or rows.axes != tuple(range(2, rank)):
            return "the grid does not lie on all axes behind the channels"
        return [rows]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """``x * scale + shift`` per channel."""
        source = node.inputs[0]
        assert source is not None
        batch, groups = shape_of(source)[0], int(attribute(node, "num_groups"))
        layout: Layout = (GRID, 1) if batch == 1 else (GRID, 0, 1)
        tensor = graph.rows_in(source, layout)
        moments = graph.cached_moments(source, groups)
        if graph.corrected_moments:
            graph.set_rows(node.outputs[0], _corrected(node, tensor, moments, layout, graph), layout)
            return
        scale, shift = _affine(node, moments, graph)
        result = graph.op("Add", [graph.op("Mul", [tensor, scale]), shift])
        graph.set_rows(node.outputs[0], result, layout)


def _affine(node: ir.Node, moments: ir.Value, graph: EditGraph) -> list[ir.Value]:
    """Scale and shift of every channel, [(batch,) channels], in the type of what is normalised."""
    source = node.inputs[0]
    assert source is not None
    batch, channels = shape_of(source)[:2]
    groups, dtype = int(attribute(node, "num_groups")), dtype_of(source)
    row = [channels] if batch == 1 else [batch, channels]
    epsilon = graph.constant(np.array(attribute(node, "epsilon", 1e-5), dtype=np.float32))
    operands = [moments, graph.ints([batch, groups, channels // groups]), epsilon, graph.ints(row)]
    made = graph.ops("MomentAffine", operands, domain=RETOUCH_DOMAIN, outputs=2, dtype=ir.DataType.FLOAT)
    for value in made:
        # Shape inference does not look into functions as far as what they reshape to.
        value.shape = ir.Shape(row)
    return list(made) if dtype == ir.DataType.FLOAT else [graph.op("Cast", [one], {"to": int(dtype)}) for one in made]


def _corrected(node: ir.Node, rows: ir.Value, moments: ir.Value, layout: Layout, graph: EditGraph) -> ir.Value:
    """The norm with moments that follow the rows, as one operator; of several edits, each with its own."""
    source, groups = node.inputs[0], int(attribute(node, "num_groups"))
    found = graph.facts.rows(source)
    assert source is not None and found is not None
    batch, channels = shape_of(source)[:2]
    size = found.grid.size * (channels // groups)
    numbers = (np.array(value, np.float32) for value in (1.0 / size, attribute(node, "epsilon", 1e-5)))
    operands = [
        *_in_float32(source, rows, layout, graph),
        moments,
        graph.ints([batch, groups, channels // groups]),
        *(graph.constant(number) for number in numbers),
    ]
    lead, owners = "" if batch == 1 else BATCH, graph.owners(found.grid)
    if owners:
        normed = graph.op(f"{lead}{STACKED_NORM}", [*operands, *owners], domain=RETOUCH_DOMAIN, dtype=ir.DataType.FLOAT)
    else:
        normed, moved = graph.ops(f"{lead}{NORM}", operands, domain=RETOUCH_DOMAIN, outputs=2, dtype=ir.DataType.FLOAT)
        graph.updates.setdefault(_moments_id(source, groups, graph), moved)
    dtype = dtype_of(source)
    return normed if dtype == ir.DataType.FLOAT else graph.op("Cast", [normed], {"to": int(dtype)})


def _in_float32(source: ir.Value, rows: ir.Value, layout: Layout, graph: EditGraph) -> list[ir.Value]:
    """The rows, the cached value and which of its rows they replace; of another type, only those rows, converted."""
    found = graph.facts.rows(source)
    assert found is not None
    cached, index = graph.cached(source, layout), graph.row_index(found.grid)
    if dtype_of(source) == ir.DataType.FLOAT:
        return [rows, cached, index]
    old = graph.op("Gather", [cached, index], {"axis": 0})
    count = graph.op("Squeeze", [graph.op("Shape", [index])])
    zero, one = (graph.constant(np.array(number, np.int64)) for number in (0, 1))
    converted = [graph.op("Cast", [part], {"to": int(ir.DataType.FLOAT)}) for part in (rows, old)]
    return [*converted, graph.op("Range", [zero, count, one])]


def _moments_id(source: ir.Value, groups: int, graph: EditGraph) -> str:
    return next(key for key, found in graph.cacheables.items() if found.value is source and found.groups == groups)


def emit_whole(node: ir.Node, graph: EditGraph) -> None:
    """The norm in its base shape, of a value that carries no rows."""
    source = node.inputs[0]
    assert source is not None
    shape, groups = shape_of(source), int(attribute(node, "num_groups"))
    dtype = dtype_of(source).numpy()
    ones, zeros = (graph.constant(np.full(groups, value, dtype)) for value in (1, 0))
    grouped = graph.op("Reshape", [graph.whole(source), graph.ints([shape[0], groups, -1])])
    epsilon = {"epsilon": float(attribute(node, "epsilon", 1e-5))}
    normed = graph.op("InstanceNormalization", [grouped, ones, zeros], epsilon)
    graph.set_whole(node.outputs[0], graph.op("Reshape", [normed, graph.ints(shape)]))
