"""Products within blocks of rows: attention within windows or frames, and operands that vary along a part of the grid.

The rows of an active block are put beside each other, [B, Q, ..] with as many places as the fullest block needs; the
other operand is [B, N, ..] with all N rows of the block, recomputed or cached. One batched product does the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.bundle import NeighbourhoodSpec
from retouch.export.lattice import Full, Grid, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import dtype_of, shape_of
from retouch.export.rules._neighbourhood import local_rows
from retouch.export.rules._product import Operand, Product
from retouch.export.rules._rule import RETOUCH_DOMAIN

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["BlockedProduct", "block_rows", "blocks_of", "blocks_neighbourhood", "rows_of_blocks"]


def blocks_of(product: Product, facts: Facts) -> tuple[int, ...]:
    """The axes of the left operand's grid along which both operands go together; empty if they are no blocks.

    The right operand carries rows of the same grid, on the same labels along these axes and on others along the rest;
    or it carries none and varies along these axes.
    """
    rows, other = facts.rows(product.left.value), facts.rows(product.right.value)
    if rows is None or (rows.flat and len(rows.grid.dims) > 1) or isinstance(facts.of(product.right.value), Full):
        return ()
    labels = [product.left.labels[axis] for axis in rows.axes]
    if other is None:
        return tuple(d for d, label in enumerate(labels) if label in product.right.labels)
    if other.grid != rows.grid or len(other.axes) != len(rows.axes):
        return ()
    theirs = [product.right.labels[axis] for axis in other.axes]
    along = tuple(d for d, (ours, their) in enumerate(zip(labels, theirs, strict=True)) if ours == their)
    apart = [their for d, their in enumerate(theirs) if d not in along]
    crossed = any(label in labels for label in apart) or None in apart
    shared = [d for d, label in enumerate(labels) if label in product.right.labels]
    return () if crossed or not apart or tuple(shared) != along else along


@dataclass(frozen=True)
class BlockedProduct:
    """Emits a product within the blocks that some axes of the left operand's grid tell apart.

    Attributes:
        product: the product; the rows of its left operand survive.
        along: those axes.
        graph: the edit graph.
    """

    product: Product
    along: tuple[int, ...]
    graph: EditGraph

    def emit(self) -> tuple[ir.Value, Layout]:
        """The row form of the result [M, ..], and its layout."""
        graph, left = self.graph, self.product.left
        grid = graph.facts.grids.blocks(self._rows(left).grid, self.along)
        batch, kept, summed, outer = self._parts()
        operand = graph.rows_in(left.value, (GRID, *left.axes([*batch, *kept, *summed])))
        sizes = [self._count(left, labels) for labels in (batch, kept, summed)]
        operand = graph.op("Reshape", [operand, graph.ints([-1, *sizes])])
        operand = graph.op("Transpose", [block_rows(graph, operand, grid)], {"perm": [0, 2, 1, 3, 4]})
        operand = graph.op("Reshape", [operand, graph.ints([0, sizes[0], -1, sizes[2]])])
        result = graph.op("MatMul", [operand, self._right(grid, batch, summed, outer)])
        width = self._count(self.product.right, outer)
        result = graph.op("Reshape", [result, graph.ints([0, sizes[0], -1, sizes[1], width])])
        result = graph.op("Transpose", [result], {"perm": [0, 2, 1, 3, 4]})
        result = rows_of_blocks(graph, graph.op("Reshape", [result, graph.ints([-1, *sizes[:2], width])]), grid)
        axes = tuple(self.product.result.index(label) for label in (*batch, *kept, *outer))
        dims = [self._size(label) for label in (*batch, *kept, *outer)]
        return graph.op("Reshape", [result, graph.ints([-1, *dims])]), (GRID, *axes)

    def _parts(self) -> tuple[list[str], list[str], list[str], list[str]]:
        """The labels beside the rows: shared, of the left operand and the result, summed, and of the right one."""
        rows = {self.product.left.labels[axis] for axis in self._rows(self.product.left).axes}
        named = self.product.labels
        batch = [label for label in named(left=True, right=True, result=True) if label not in rows]
        kept = [label for label in named(left=True, right=False, result=True) if label not in rows]
        return (
            batch,
            kept,
            named(left=True, right=True, result=False),
            named(left=False, right=True, result=True),
        )

    def _right(self, grid: Grid, batch: list[str], summed: list[str], outer: list[str]) -> ir.Value:
        """The other operand of every active block [B, batch, summed, outer]."""
        graph, right = self.graph, self.product.right
        wanted = [*batch, *summed, *outer]
        rows = graph.facts.rows(right.value)
        if rows is None:
            left = self._rows(self.product.left)
            labels = [str(self.product.left.labels[left.axes[d]]) for d in self.along]
            whole = graph.permuted_whole(right.value, right.axes([*labels, *wanted]))
            flat = graph.op("Reshape", [whole, graph.ints([-1, *(self._size(label) for label in wanted)])])
            tensor = graph.op("Gather", [flat, graph.row_index(grid)], {"axis": 0})
        else:
            tensor = self._merged_blocks(grid, rows, wanted)
        sizes = [self._count(right, labels) for labels in (batch, summed, outer)]
        return graph.op("Reshape", [tensor, graph.ints([-1, *sizes])])

    def _merged_blocks(self, grid: Grid, rows: Rows, wanted: list[str]) -> ir.Value:
        """All rows of every active block, the axes within a block and the others in an order."""
        graph, right = self.graph, self.product.right
        within = [str(right.labels[axis]) for d, axis in enumerate(rows.axes) if d not in self.along]
        rest = tuple(axis for axis in graph.rows_layout(right.value) if axis != GRID)
        spec = blocks_neighbourhood(rows.grid, grid)
        operands = [*local_rows(graph, right.value, (GRID, *rest), spec, 0.0), graph.neighbours(spec)]
        tensor = graph.op("GatherRows", operands, domain=RETOUCH_DOMAIN, dtype=dtype_of(right.value))
        present = [*within, *(str(right.labels[axis]) for axis in rest)]
        tensor = graph.op("Reshape", [tensor, graph.ints([-1, *(self._size(label) for label in present)])])
        return graph.op("Transpose", [tensor], {"perm": [0, *(1 + present.index(label) for label in wanted)]})

    def _rows(self, operand: Operand) -> Rows:
        rows = self.graph.facts.rows(operand.value)
        assert rows is not None
        return rows

    def _size(self, label: str) -> int:
        operand = self.product.left if label in self.product.left.labels else self.product.right
        return shape_of(operand.value)[operand.labels.index(label)]

    def _count(self, operand: Operand, labels: list[str]) -> int:
        return math.prod(shape_of(operand.value)[axis] for axis in operand.axes(labels))


def blocks_neighbourhood(source: Grid, blocks: Grid) -> NeighbourhoodSpec:
    """All rows of every block, row-major."""
    sources = tuple(
        (tuple(range(size)),) if count == 1 else tuple((position,) for position in range(size))
        for size, count in zip(source.dims, blocks.dims, strict=True)
    )
    return NeighbourhoodSpec(f"{source.id}_{blocks.id}", source.id, blocks.id, sources, None, (1,) * len(sources))


def block_rows(graph: EditGraph, rows: ir.Value, blocks: Grid) -> ir.Value:
    """Rows [M, ..] put beside each other by block [B, Q, ..]."""
    return graph.op("Gather", [rows, graph.block_members(blocks)], {"axis": 0})


def rows_of_blocks(graph: EditGraph, rows: ir.Value, blocks: Grid) -> ir.Value:
    """The rows [M, ..] out of the places [B * Q, ..] of blocks."""
    return graph.op("Gather", [rows, graph.block_places(blocks)], {"axis": 0})
