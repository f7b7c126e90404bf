"""The inputs of an edit graph that tell it where its rows are, and what the base run computed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from retouch.bundle import CacheableSpec, NeighbourhoodSpec
from retouch.errors import ExportError
from retouch.export.lattice import Grid
from retouch.export.layout import Layout
from retouch.export.model_shapes import dtype_of, shape_of
from retouch.export.node_builder import BindingTime, NodeBuilder

__all__ = ["Cacheable", "EditInputs"]


@dataclass(frozen=True)
class Cacheable:
    """What the base graph has to compute for one ``cached.<id>`` input.

    ``groups`` is the group count of a GroupNorm whose moments are wanted, ``None`` if the value itself is.
    """

    spec: CacheableSpec
    value: ir.Value
    layout: Layout
    groups: int | None = None


class EditInputs(NodeBuilder):
    """A graph under construction with the inputs that edit graphs have, each made on first use.

    Attributes:
        cacheables: what the base run has to keep, by id.
        neighbourhoods: which rows read which, by id.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cacheables: dict[str, Cacheable] = {}
        self.neighbourhoods: dict[str, NeighbourhoodSpec] = {}

    def row_index(self, grid: Grid) -> ir.Value:
        """The input that lists the active rows of a grid."""
        return self.input(f"rows.{grid.id}", ir.DataType.INT64, [f"M_{grid.id}"], BindingTime.EDIT)

    def block_members(self, blocks: Grid) -> ir.Value:
        """The input [B, Q] that lists the active rows of every active block by their places among all active ones."""
        sizes = [f"B_{blocks.id}", f"Q_{blocks.id}"]
        return self.input(f"members.{blocks.id}", ir.DataType.INT64, sizes, BindingTime.EDIT)

    def block_places(self, blocks: Grid) -> ir.Value:
        """The input [M] that says where in the members of all blocks every active row stands."""
        assert blocks.blocks is not None
        return self.input(f"places.{blocks.id}", ir.DataType.INT64, [f"M_{blocks.blocks.id}"], BindingTime.EDIT)

    def cached_moments(self, value: ir.Value, groups: int) -> ir.Value:
        """The input that carries mean and variance [2, batch, groups] of a value in the base run."""
        key = f"{value.name}[moments{groups}]"
        shape = (2, shape_of(value)[0], groups)
        if key not in self.cacheables:
            spec = CacheableSpec(key, str(value.name), "statistic", None, None, "float32", shape, math.prod(shape) * 4)
            self.cacheables[key] = Cacheable(spec, value, (), groups)
        return self.input(f"cached.{key}", ir.DataType.FLOAT, shape, BindingTime.STATISTIC)

    @staticmethod
    def whole_id(value: ir.Value) -> str:
        """The id of the cacheable that holds a value without rows."""
        return f"{value.name}[whole]"

    def cached_whole(self, value: ir.Value) -> ir.Value:
        """The input that carries a value without rows as the base run computed it."""
        key, shape, dtype = self.whole_id(value), shape_of(value), dtype_of(value)
        if key not in self.cacheables:
            size = int(math.prod(shape) * dtype.itemsize)
            spec = CacheableSpec(key, str(value.name), "statistic", None, None, dtype.numpy().name, shape, size)
            self.cacheables[key] = Cacheable(spec, value, ())
        return self.input(f"cached.{key}", dtype, shape, BindingTime.STATISTIC)

    def neighbours(self, spec: NeighbourhoodSpec) -> ir.Value:
        """The index input [M, T] of a neighbourhood."""
        self._register(spec)
        taps = math.prod(len(axis[0]) for axis in spec.sources)
        return self.input(f"neighbours.{spec.id}", ir.DataType.INT64, [f"M_{spec.target}", taps], BindingTime.EDIT)

    def neighbour_weights(self, spec: NeighbourhoodSpec) -> ir.Value:
        """The weight input [M, T] of a neighbourhood."""
        taps = math.prod(len(axis[0]) for axis in spec.sources)
        return self.input(f"weights.{spec.id}", ir.DataType.FLOAT, [f"M_{spec.target}", taps], BindingTime.EDIT)

    def _register(self, spec: NeighbourhoodSpec) -> None:
        if self.neighbourhoods.setdefault(spec.id, spec) != spec:
            raise ExportError(
                f"Two different neighbourhoods are both named {spec.id!r}, so one would read the other's rows. "
                "The rule that names them must put all that tells them apart into the name."
            )

    def halo(self, spec: NeighbourhoodSpec) -> ir.Value:
        """The input [H] that lists the inactive source rows a neighbourhood reads."""
        self._register(spec)
        return self.input(f"halo.{spec.id}", ir.DataType.INT64, [f"H_{spec.id}"], BindingTime.EDIT)
