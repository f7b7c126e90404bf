"""Chains of an edit graph put together into operators that do them in one pass over the rows.

Every fusion is one file. It finds a chain of standard operators and puts an ``ai.retouch`` function in its place whose
body is that chain, so a runtime without kernels computes what it computed before. CPUs have kernels for float32, cards
for half precision as well.
"""

from __future__ import annotations

import onnx_ir as ir

from retouch.export.fusions._row_names import name_rows
from retouch.export.fusions._shapes import inferred_shapes
from retouch.export.fusions.attention import fuse_attention
from retouch.export.fusions.tails import fuse_tails

__all__ = ["fuse"]


def fuse(model: ir.Model) -> None:
    """Applies all fusions to an edit graph, in place; names and types of inputs and outputs stay."""
    with inferred_shapes(model):
        fuse_attention(model.graph)
        name_rows(model.graph)
        fuse_tails(model.graph)
    _forget_unused_weights(model.graph)


def _forget_unused_weights(graph: ir.Graph) -> None:
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output():
            del graph.initializers[name]
