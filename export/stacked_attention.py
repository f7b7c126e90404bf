"""The Attention operator in a stacked graph: written out, for a query must see no other edit's keys.

The operator's own mask would have to hold minus infinity there, which makes engines compute with denormal numbers. So
the scores are lowered in front of the softmax, and no further than they have to be (``stack.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from retouch.export.lattice import Grid
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import attribute, dtype_of, shape_of

if TYPE_CHECKING:
    from retouch.export.stack import StackedGraph

__all__ = ["emit_stacked_attention"]

_LAYOUT: Layout = (0, 1, GRID, 3)
_KEYS = 3


def emit_stacked_attention(node: ir.Node, grid: Grid, graph: StackedGraph) -> None:
    """The rows of an Attention node whose keys or values carry rows of a grid."""
    _Attention(node, grid, graph).emit()


@dataclass(frozen=True)
class _Attention:
    node: ir.Node
    grid: Grid
    graph: StackedGraph

    def emit(self) -> None:
        graph, query, output = self.graph, self._input(0), self.node.outputs[0]
        scores = graph.op("MatMul", [self._queries(query), self._columns(self._input(1), transposed=True)])
        scores = self._masked(self._capped(self._scaled(scores)))
        weights = graph.op("Softmax", [graph.own_scores(output, self.grid, scores, _LAYOUT, _KEYS)], {"axis": -1})
        result = graph.op("MatMul", [weights, self._columns(self._input(2), transposed=False)])
        if len(shape_of(query)) == _LAYOUT[-1] + 1:
            graph.set_rows(output, result, _LAYOUT)
            return
        result = graph.op("Transpose", [result], {"perm": [0, 2, 1, 3]})
        sizes = [shape_of(output)[0], -1, shape_of(output)[2]]
        graph.set_rows(output, graph.op("Reshape", [result, graph.ints(sizes)]), (0, GRID, 2))

    def _input(self, place: int) -> ir.Value:
        value = self.node.inputs[place]
        assert value is not None
        return value

    def _heads(self, place: int) -> int:
        """Number of heads of queries (0) or of keys and values (1)."""
        shape = shape_of(self._input(place))
        return shape[1] if len(shape) > 3 else int(attribute(self.node, ("q_num_heads", "kv_num_heads")[place]))

    def _queries(self, query: ir.Value) -> ir.Value:
        """[batch, heads, active rows, depth]."""
        rank = len(shape_of(query))
        return self._by_head(self.graph.rows_in(query, (*range(rank - 2), GRID, rank - 1)), query, self._heads(0))

    def _by_head(self, tensor: ir.Value, value: ir.Value, heads: int) -> ir.Value:
        shape = shape_of(value)
        if len(shape) > 3:
            return tensor
        split = self.graph.op("Reshape", [tensor, self.graph.ints([shape[0], -1, heads, shape[2] // heads])])
        return self.graph.op("Transpose", [split], {"perm": [0, 2, 1, 3]})

    def _columns(self, value: ir.Value, *, transposed: bool) -> ir.Value:
        """[batch, heads, cached and recomputed rows, depth] of keys or values, for every head of the queries."""
        graph, rank = self.graph, len(shape_of(value))
        if graph.facts.rows(value) is not None:
            tensor = graph.with_columns(value)
        else:
            tensor = graph.along_columns(graph.existing(value), self.grid, rank - 2)
        tensor = self._by_head(tensor, value, self._heads(1))
        groups = self._heads(0) // self._heads(1)
        if groups > 1:
            batch, depth = shape_of(value)[0], shape_of(value)[-1] // (1 if rank > 3 else self._heads(1))
            tensor = graph.op("Unsqueeze", [tensor, graph.ints([2])])
            tensor = graph.op("Expand", [tensor, graph.ints([1, 1, groups, 1, 1])])
            tensor = graph.op("Reshape", [tensor, graph.ints([batch, self._heads(0), -1, depth])])
        return graph.op("Transpose", [tensor], {"perm": [0, 1, 3, 2]}) if transposed else tensor

    def _number(self, number: float) -> ir.Value:
        return self.graph.constant(np.array(number, dtype=dtype_of(self._input(0)).numpy()))

    def _scaled(self, scores: ir.Value) -> ir.Value:
        depth = shape_of(self._input(0))[-1] // (1 if len(shape_of(self._input(0))) > 3 else self._heads(0))
        return self.graph.op("Mul", [scores, self._number(attribute(self.node, "scale", 1 / math.sqrt(depth)))])

    def _capped(self, scores: ir.Value) -> ir.Value:
        cap = attribute(self.node, "softcap", 0.0)
        if not cap:
            return scores
        bounded = self.graph.op("Tanh", [self.graph.op("Div", [scores, self._number(cap)])])
        return self.graph.op("Mul", [bounded, self._number(cap)])

    def _masked(self, scores: ir.Value) -> ir.Value:
        graph, mask = self.graph, self.node.inputs[3] if len(self.node.inputs) > 3 else None
        if mask is not None:
            tensor = self._mask(mask)
            scores = (
                self._hidden(tensor, scores)
                if dtype_of(mask) == ir.DataType.BOOL
                else graph.op("Add", [scores, tensor])
            )
        return self._hidden(self._causal(), scores) if attribute(self.node, "is_causal", 0) else scores

    def _hidden(self, allowed: ir.Value, scores: ir.Value) -> ir.Value:
        return self.graph.op("Where", [allowed, scores, self._number(-np.inf)])

    def _mask(self, mask: ir.Value) -> ir.Value:
        """The mask of the active queries against cached and recomputed keys."""
        graph, rank, rows = self.graph, len(shape_of(mask)), self.graph.facts.rows(mask)
        queries, keys = shape_of(mask)[-2:]
        if rows is not None and rows.axes == (rank - 1,):
            tensor = graph.with_columns(mask)
        elif rows is not None:
            tensor = graph.rows_in(mask, (*range(rank - 2), GRID, rank - 1))
        else:
            tensor = graph.existing(mask)
        if queries != 1 and (rows is None or rows.axes != (rank - 2,)):
            tensor = graph.op("Gather", [tensor, graph.row_index(self._query_grid())], {"axis": rank - 2})
        if keys != 1 and (rows is None or rows.axes != (rank - 1,)):
            tensor = graph.along_columns(tensor, self.grid, rank - 1)
        return tensor

    def _query_grid(self) -> Grid:
        rows = self.graph.facts.rows(self.node.outputs[0])
        assert rows is not None
        return rows.grid

    def _causal(self) -> ir.Value:
        graph = self.graph
        positions = graph.op("Unsqueeze", [graph.row_index(self._query_grid()), graph.ints([1])])
        keys = graph.along_columns(graph.constant(np.arange(self.grid.size, dtype=np.int64)), self.grid, 0)
        return graph.op("GreaterOrEqual", [positions, keys])
