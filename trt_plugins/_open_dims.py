"""The open dims of a graph's inputs, and the sizes that a region gives them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import onnx

from retouch.bundle import EditGraphSpec, Manifest
from retouch.errors import BuildError
from retouch.region import ActiveRows, stacked_index_inputs

__all__ = ["Shape", "input_shapes", "sizes_of"]

Shape = tuple[int | str, ...]
"""A shape whose open dims are names."""


def input_shapes(graph: onnx.GraphProto) -> dict[str, Shape]:
    """The shapes of a graph's inputs."""
    return {value.name: tuple(_dim(dim) for dim in value.type.tensor_type.shape.dim) for value in graph.input}


def sizes_of(
    edits: Sequence[ActiveRows], manifest: Manifest, spec: EditGraphSpec, shapes: Mapping[str, Shape]
) -> dict[str, int]:
    """The size of every open dim of an edit graph's inputs for the active rows of an edit, or of several in a stack.

    Raises:
        BuildError: the graph has an open dim that no region gives a size.
    """
    neighbourhoods = [item for item in manifest.neighbourhoods if item.id in spec.neighbourhoods]
    grids, blocks = ([grid for grid in manifest.grids if grid.id in ids] for ids in (spec.grids, spec.blocks))
    sizes: dict[str, int] = {}
    for name, array in stacked_index_inputs(edits, neighbourhoods, grids, blocks).items():
        sizes.update(_named_sizes(shapes.get(name, ()), array.shape))
    for name in spec.masks:
        sizes.update(_named_sizes(shapes.get(f"mask.{name}", ()), _mask_shape(edits, *name.split("."))))
    missing = {dim for shape in shapes.values() for dim in shape if isinstance(dim, str)} - sizes.keys()
    if missing:
        raise BuildError(
            f"Expected every open dim of {spec.file} to follow from a region's rows, got {', '.join(sorted(missing))}. "
            "The bundle's manifest does not describe its graphs; export the model again."
        )
    return sizes


def _mask_shape(edits: Sequence[ActiveRows], queries: str, keys: str) -> tuple[int, int]:
    """The shape of a stacked graph's mask: all active rows, by the cached keys and the active ones behind them."""
    rows, columns = (sum(active.rows[grid].size for active in edits) for grid in (queries, keys))
    return rows, math.prod(edits[0].dims[keys]) + columns


def _named_sizes(shape: Shape, sizes: Sequence[int]) -> dict[str, int]:
    return {dim: size for dim, size in zip(shape, sizes, strict=False) if isinstance(dim, str)}


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param
