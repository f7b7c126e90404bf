"""Resizing: every row reads one position per axis, or a weighted sum of several."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.bundle import NeighbourhoodSpec
from retouch.export.lattice import Fact, Rows
from retouch.export.model_shapes import attribute, constant, shape_of
from retouch.export.rules._neighbourhood import channels_last, gather_rows, spatial_rows, weighted_rows
from retouch.export.rules._rule import rule
from retouch.region import CUBIC_COEFFICIENT, ResizeFilter, filtered_axis, linear_axis, nearest_axis

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Resize"]


@rule("Resize", "Upsample")
class Resize:
    """Modes ``nearest``, ``linear`` and ``cubic`` over the grid's axes, the latter two with or without antialias."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """Rows of the grid of the result's resolution."""
        rows = spatial_rows(node, facts)
        if isinstance(rows, str):
            return rows
        if attribute(node, "mode", "nearest") not in ("nearest", "linear", "cubic"):
            return f"mode {attribute(node, 'mode')} is not supported"
        if attribute(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
            return "cropping while resizing is not supported"
        if attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
            return "keep_aspect_ratio_policy is not supported"
        if shape_of(node.inputs[0])[:2] != shape_of(node.outputs[0])[:2]:
            return "it resizes batch or channels"
        return [Rows(facts.grids.get(shape_of(node.outputs[0])[2:]), rows.axes)]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """One gathered row, or a weighted sum of the corners."""
        source, output = node.inputs[0], node.outputs[0]
        assert source is not None
        spec = _neighbourhood(node, graph)
        if spec.weights is None:
            result = graph.op("Squeeze", [gather_rows(graph, source, spec), graph.ints([1])])
        else:
            result = weighted_rows(graph, source, spec)
        graph.set_rows(output, result, channels_last(output))


def _neighbourhood(node: ir.Node, graph: EditGraph) -> NeighbourhoodSpec:
    before, after = graph.facts.rows(node.inputs[0]), graph.facts.rows(node.outputs[0])
    assert before is not None and after is not None
    mode = "asymmetric" if node.op_type == "Upsample" else "half_pixel"
    mode = str(attribute(node, "coordinate_transformation_mode", mode))
    rounding = str(attribute(node, "nearest_mode", "floor" if node.op_type == "Upsample" else "round_prefer_floor"))
    kind, filtering, scales = str(attribute(node, "mode", "nearest")), _filter(node), _scales(node)
    name = f"{before.grid.id}_{after.grid.id}_{kind}_{mode}_{rounding}"
    if filtering is not None:
        name += f"{'_antialias' * filtering.antialias}{'_inside' * filtering.exclude_outside}_{filtering.coefficient:g}"
    name += "".join(f"_{scale:g}" for scale in scales)
    ranges = list(zip(before.grid.dims, after.grid.dims, scales, strict=True))
    ones = (1,) * len(ranges)
    if kind == "nearest":
        sources = tuple(tuple(map(tuple, nearest_axis(i, o, s, mode, rounding))) for i, o, s in ranges)
        return NeighbourhoodSpec(name, before.grid.id, after.grid.id, sources, None, ones)
    if filtering is None:
        pairs = [linear_axis(i, o, s, mode) for i, o, s in ranges]
    else:
        pairs = [filtered_axis(i, o, s, filtering, mode) for i, o, s in ranges]
    sources = tuple(tuple(map(tuple, pair[0])) for pair in pairs)
    weights = tuple(tuple(map(tuple, pair[1])) for pair in pairs)
    return NeighbourhoodSpec(name, before.grid.id, after.grid.id, sources, None, ones, weights)


def _filter(node: ir.Node) -> ResizeFilter | None:
    """The filter, ``None`` for a plain nearest or linear resize."""
    mode, antialias = str(attribute(node, "mode", "nearest")), bool(attribute(node, "antialias", 0))
    if mode == "nearest" or (mode == "linear" and not antialias):
        return None
    outside = bool(attribute(node, "exclude_outside", 0))
    return ResizeFilter(mode, antialias, outside, float(attribute(node, "cubic_coeff_a", CUBIC_COEFFICIENT)))


def _scales(node: ir.Node) -> list[float]:
    """The scale of every grid axis: the operator's own, or the ratio of the sizes."""
    before, after = shape_of(node.inputs[0]), shape_of(node.outputs[0])
    position = 1 if node.op_type == "Upsample" else 2
    given = constant(node.inputs[position]) if len(node.inputs) > position else None
    if given is None or given.size == 0:
        return [n_out / n_in for n_in, n_out in zip(before[2:], after[2:], strict=True)]
    axes = attribute(node, "axes") or tuple(range(len(before)))
    scale = {axis % len(before): float(value) for axis, value in zip(axes, given, strict=True)}
    assert math.prod(after) > 0
    return [scale.get(axis, 1.0) for axis in range(2, len(before))]
