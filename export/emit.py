"""The edit graph under construction: row-carrying values in a lazy layout, cached tensors and index inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from retouch.bundle import CacheableSpec
from retouch.export.analysis import Facts
from retouch.export.columns import Columns
from retouch.export.edit_inputs import Cacheable, EditInputs
from retouch.export.lattice import Beside, Grid, Rows
from retouch.export.layout import GRID, Layout, default_layout, fused_shape, without_units
from retouch.export.model_shapes import constant, dtype_of, element_count, shape_of
from retouch.export.node_builder import BindingTime
from retouch.export.row_numbers import number_along
from retouch.export.rules._rule import RETOUCH_DOMAIN

__all__ = ["EditGraph", "Emitted"]

_FOLD_LIMIT = 1 << 16


@dataclass(frozen=True)
class Emitted:
    """A row-carrying value in the edit graph and the layout it was emitted in."""

    value: ir.Value
    layout: Layout


class EditGraph(Columns, EditInputs):
    """Builds one edit graph. Rules call it to read their operands and to record their results.

    Args:
        facts: the analysis of the base graph.
        corrected_moments: whether GroupNorm moments follow the active rows instead of staying at the base run's.
    """

    def __init__(self, facts: Facts, *, corrected_moments: bool) -> None:
        super().__init__()
        self.facts = facts
        self.corrected_moments = corrected_moments
        self.updates: dict[str, ir.Value] = {}
        self._rows: dict[ir.Value, Emitted] = {}
        self._whole: dict[ir.Value, ir.Value] = {}
        self._merged: dict[ir.Value, ir.Value] = {}

    # The model's edges --------------------------------------------------------------------------------------

    def open_editable(self, source: ir.Value) -> None:
        """Adds the editable input, whole, and picks out its active rows."""
        rows = self.facts.rows(source)
        assert rows is not None
        tensor = self.input(str(source.name), dtype_of(source), shape_of(source), BindingTime.EDIT)
        self.gather_whole(source, tensor, rows)

    def output(self, value: ir.Value) -> ir.Value:
        """An output of the model, whole."""
        tensor = self.whole(value)
        assert tensor is not None
        return tensor

    def output_shape(self, value: ir.Value) -> ir.Shape:
        """The shape of an output of the model."""
        return ir.Shape(shape_of(value))

    # Results ------------------------------------------------------------------------------------------------

    def set_rows(self, value: ir.Value, emitted: ir.Value, layout: Layout) -> None:
        """Records the row form of a value of the base graph."""
        self._rows[value] = Emitted(emitted, layout)

    def set_whole(self, value: ir.Value, emitted: ir.Value) -> None:
        """Records the whole form of a value of the base graph, in its base shape."""
        self._whole[value] = emitted

    def take_whole(self, value: ir.Value) -> ir.Value:
        """The whole form of a value, which from now on is rebuilt from its rows instead."""
        return self._whole.pop(value)

    # Operands -----------------------------------------------------------------------------------------------

    def rows(self, value: ir.Value) -> Emitted:
        """The row form of a row-carrying value."""
        return self._rows[value]

    def rows_in(self, value: ir.Value, layout: Layout) -> ir.Value:
        """The row form of a value, transposed to a layout; axes of size one may come and go."""
        emitted = self._rows[value]
        return self.fit(emitted.value, emitted.layout, layout)

    def fit(self, tensor: ir.Value, layout: Layout, wanted: Layout) -> ir.Value:
        """A tensor moved from one layout to another; axes that only one of them names have size one."""
        dropped = [i for i, axis in enumerate(layout) if axis not in wanted]
        if dropped:
            tensor = self.op("Squeeze", [tensor, self.ints(dropped)])
        kept = [axis for axis in layout if axis in wanted]
        order = [kept.index(axis) for axis in wanted if axis in kept]
        if order != sorted(order):
            tensor = self.op("Transpose", [tensor], {"perm": order})
        added = [i for i, axis in enumerate(wanted) if axis not in layout]
        return self.op("Unsqueeze", [tensor, self.ints(added)]) if added else tensor

    def whole(self, value: ir.Value | None) -> ir.Value | None:
        """A value in its base shape: constant, condition, computed whole, or recomputed rows merged into the cached."""
        if value is None:
            return None
        if value in self._whole:
            return self._whole[value]
        if value in self._rows:
            return self._unfused(value)
        if value.is_initializer() and value.const_value is not None:
            return self.initializer(str(value.name), value.const_value)
        if isinstance(self.facts.of(value), Beside):
            return self.cached_whole(value)
        return self.input(str(value.name), dtype_of(value), shape_of(value), BindingTime.CONDITION)

    def permuted_whole(self, value: ir.Value, axes: tuple[int, ...]) -> ir.Value:
        """A value without rows, its axes of size one dropped and the others in an order."""
        tensor, shape = self.whole(value), shape_of(value)
        assert tensor is not None
        present = sorted(axes)
        if len(present) != len(shape):
            tensor = self.op("Reshape", [tensor, self.ints([shape[axis] for axis in present])])
        perm = [present.index(axis) for axis in axes]
        return tensor if perm == sorted(perm) else self.op("Transpose", [tensor], {"perm": perm})

    def _unfused(self, value: ir.Value) -> ir.Value:
        rows = self.facts.rows(value)
        assert rows is not None
        shape, first, end = shape_of(value), rows.axes[0], rows.axes[-1] + 1
        if len(rows.axes) == 1 and math.prod(shape[:first]) == 1:
            return self._merged_in_place(value, rows)
        if rows.axes == tuple(range(first, end)):
            return self._scattered(value, rows, first, end)
        layout = default_layout(shape, rows)
        tensor = self.merged(value, layout)
        order = [axis for unit in layout for axis in (rows.axes if unit == GRID else (unit,))]
        sizes = [shape[axis] for axis in order]
        if len(order) != len(layout):
            tensor = self.op("Reshape", [tensor, self.ints(sizes)])
        base = [axis for axis in range(len(shape)) if axis in order]
        perm = [order.index(axis) for axis in base]
        if perm != sorted(perm):
            tensor = self.op("Transpose", [tensor], {"perm": perm})
        if len(base) != len(shape):
            tensor = self.op("Reshape", [tensor, self.ints(shape)])
        return tensor

    def merged(self, value: ir.Value, layout: Layout) -> ir.Value:
        """A row-carrying value with all its rows, in a layout: the recomputed ones put into the cached ones.

        They are cached and merged with the rows first, where a row is one run of memory; products absorb the transpose.
        """
        rows = self.facts.rows(value)
        assert rows is not None
        stored = default_layout(shape_of(value), rows)
        if value not in self._merged:
            self._merged[value] = self._merge(value, stored, self._position(rows.grid, 0))
        return self.fit(self._merged[value], stored, layout)

    def _merged_in_place(self, value: ir.Value, rows: Rows) -> ir.Value:
        """All rows in the base shape. A reshape behind the merge would copy the value once more if it is an output."""
        axis, rank = rows.axes[0], len(shape_of(value))
        layout = (*range(axis), GRID, *range(axis + 1, rank))
        return self._merge(value, layout, self._position(rows.grid, axis))

    def _scattered(self, value: ir.Value, rows: Rows, first: int, end: int) -> ir.Value:
        """All rows in the base shape, in which they lie along axes with others in front of them."""
        shape = shape_of(value)
        layout = (*range(first), GRID, *range(end, len(shape)))
        cached = self.cached(value, layout)
        if end - first > 1:
            cached = self.op("Reshape", [cached, self.ints(shape)])
        operands = [cached, self.row_index(rows.grid), self.rows_in(value, layout)]
        attributes = {"axis": first, "end": end}
        return self.op("ScatterRows", operands, attributes, domain=RETOUCH_DOMAIN, dtype=dtype_of(value))

    def _merge(self, value: ir.Value, layout: Layout, position: ir.Value) -> ir.Value:
        rows = self.rows_in(value, layout[layout.index(GRID) :])
        operands = [self.cached(value, layout), position, rows]
        return self.op("MaskedMerge", operands, domain=RETOUCH_DOMAIN, dtype=dtype_of(value))

    def _position(self, grid: Grid, lead: int) -> ir.Value:
        """The active rows as positions [M, lead + 1] behind leading axes of size one."""
        index = self.op("Unsqueeze", [self.row_index(grid), self.ints([1])])
        return self.op("Pad", [index, self.ints([0, lead, 0, 0])]) if lead else index

    # Inputs of the edit graph -------------------------------------------------------------------------------

    def cached(self, value: ir.Value, layout: Layout) -> ir.Value:
        """The input that carries the base run's value in a layout; its recomputed rows become an update output."""
        rows = self.facts.rows(value)
        assert rows is not None
        key = f"{value.name}[{','.join('g' if axis == GRID else str(axis) for axis in layout)}]"
        shape = fused_shape(shape_of(value), rows, layout)
        if key not in self.cacheables:
            spec = CacheableSpec(
                id=key,
                value=str(value.name),
                kind="rows",
                grid=rows.grid.id,
                row_axis=layout.index(GRID),
                dtype=dtype_of(value).numpy().name,
                shape=shape,
                bytes=int(math.prod(shape) * dtype_of(value).itemsize),
            )
            self.cacheables[key] = Cacheable(spec, value, layout)
            self.updates[key] = self.rows_in(value, layout)
        return self.input(f"cached.{key}", dtype_of(value), shape, BindingTime.EDIT)

    # Operands without rows ----------------------------------------------------------------------------------

    def gather_whole(self, value: ir.Value, tensor: ir.Value, rows: Rows) -> None:
        """Records the row form of a value whose whole form is at hand: its active rows, picked out."""
        shape = shape_of(value)
        others = tuple(axis for axis, size in enumerate(shape) if size != 1 and axis not in rows.axes)
        order = (*rows.axes, *others)
        layout: Layout = (GRID, *others)
        if rows.axes == tuple(range(rows.axes[0], rows.axes[-1] + 1)):
            order = (*(a for a in others if a < rows.axes[0]), *rows.axes, *(a for a in others if a > rows.axes[-1]))
            layout = tuple(dict.fromkeys(GRID if axis in rows.axes else axis for axis in order))
        rest = tuple(axis for axis in range(len(shape)) if axis not in order)
        if list(order) != sorted(order):
            tensor = self.op("Transpose", [tensor], {"perm": (*order, *rest)})
        tensor = self.op("Reshape", [tensor, self.ints(fused_shape(shape, rows, layout))])
        index = self.row_index(rows.grid)
        self.set_rows(value, self.op("Gather", [tensor, index], {"axis": layout.index(GRID)}), layout)

    def aligned(self, value: ir.Value, rank: int, rows: Rows, layout: Layout) -> ir.Value:
        """A value without rows, made to broadcast against a layout; what varies along the grid is gathered.

        Args:
            value: the operand.
            rank: rank of the result, to which the operand's shape is right-aligned.
            rows: the rows of the result.
            layout: the result's layout.
        """
        shape = (1,) * (rank - len(shape_of(value))) + shape_of(value)
        if math.prod(shape) == 1:
            return self._reshaped(value, ())
        along = any(shape[axis] != 1 for axis in rows.axes)
        wanted = tuple(a for a in layout if (along if a == GRID else shape[a] != 1))
        tensor = self._gathered(value, shape, rows, wanted) if along else self._permuted(value, shape, wanted)
        first = next((i for i, axis in enumerate(layout) if axis in wanted), 0)
        added = [i - first for i, axis in enumerate(layout) if i > first and axis not in wanted]
        tensor = self.op("Unsqueeze", [tensor, self.ints(added)]) if added else tensor
        if not along and tensor.shape is None:
            sizes = [shape[axis] if axis in wanted else 1 for axis in layout[first:]]
            tensor.type, tensor.shape = ir.TensorType(dtype_of(value)), ir.Shape(sizes)
        return tensor

    def _reshaped(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        array = constant(value)
        if array is not None:
            return self.constant(array.reshape(shape))
        tensor = self.whole(value)
        return self.op("Reshape", [tensor, self.ints(shape)])

    def _permuted(self, value: ir.Value, shape: tuple[int, ...], wanted: Layout) -> ir.Value:
        sizes = [shape[axis] for axis in sorted(wanted)]
        perm = [sorted(wanted).index(axis) for axis in wanted]
        array = constant(value) if element_count(value) <= _FOLD_LIMIT else None
        if array is not None:
            return self.constant(array.reshape(sizes).transpose(perm))
        tensor = self._reshaped(value, sizes)
        return self.op("Transpose", [tensor], {"perm": perm}) if perm != sorted(perm) else tensor

    def _gathered(self, value: ir.Value, shape: tuple[int, ...], rows: Rows, wanted: Layout) -> ir.Value:
        others = tuple(axis for axis in wanted if axis != GRID)
        dims = (rows.grid.size,) if rows.flat else rows.grid.dims
        varying = [
            (axis, size, dim) for dim, (axis, size) in enumerate(zip(rows.axes, dims, strict=True)) if shape[axis] != 1
        ]
        tensor = self._reshaped(value, shape)
        front = (*(axis for axis, *_ in varying), *others)
        perm = [*front, *(axis for axis in range(len(shape)) if axis not in front)]
        if perm != sorted(perm):
            tensor = self.op("Transpose", [tensor], {"perm": perm})
        count = math.prod(size for _, size, _ in varying)
        tensor = self.op("Reshape", [tensor, self.ints([count, *(shape[axis] for axis in others)])])
        index = number_along(self, self.row_index(rows.grid), dims, [dim for *_, dim in varying])
        return self.fit(self.op("Gather", [tensor, index], {"axis": 0}), (GRID, *others), wanted)

    def rows_layout(self, value: ir.Value) -> Layout:
        """The layout a row-carrying value was emitted in, without its axes of size one."""
        return without_units(self._rows[value].layout, shape_of(value))
