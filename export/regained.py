"""Rows behind a node that is computed whole: picked out again, so that the node costs only itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Rows
from retouch.export.model_shapes import shape_of

if TYPE_CHECKING:
    from retouch.export.analysis import Facts

__all__ = ["regained_rows"]

_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
_ALONG_THE_GRID = "Attention CumSum Hardmax LogSoftmax LpNormalization LRN LSTM GRU RNN Softmax Trilu"
_NORMS = (
    "BatchNormalization GroupNorm GroupNormalization InstanceNormalization LayerNormalization "
    "MeanVarianceNormalization RMSNormalization"
)
_WINDOWED = "AveragePool Conv DeformConv LpPool MaxPool"
_WRITTEN_INTO = "ScatterElements ScatterND TensorScatter"

_KEEPING = frozenset(f"{_ALONG_THE_GRID} {_NORMS} {_WINDOWED} {_WRITTEN_INTO}".split())
"""Operators whose result at a position is made for that position, whatever else it depends on.

Behind others, such as a reversal or a warp, the change of an edit may lie where no row is active. Freezing there would
lose it, so what follows them stays whole.
"""


def regained_rows(node: ir.Node, facts: Facts) -> Rows | None:
    """The rows of the first output of a node that is computed whole, ``None`` if they cannot be told.

    Inactive rows are then what the base run computed, as everywhere: a sum along the grid that ran over the region
    reaches the rows behind it only where they are active.
    """
    source, output = node.inputs[0], node.outputs[0]
    rows = facts.rows(source)
    if rows is None or not _keeps_positions(node, facts):
        return None
    before, after = shape_of(source), shape_of(output)
    same_rank = len(before) == len(after) or node.op_type in _RECURRENT
    return rows if same_rank and all(before[axis] == after[axis] for axis in rows.axes) else None


def _keeps_positions(node: ir.Node, facts: Facts) -> bool:
    name = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
    return name in facts.keeping or (name.removeprefix("ai.retouch.") in _KEEPING)
