"""``act((x W + b) * gate + residual) * factor + shift)`` and parts of it  ->  one operator.

The gate of a transformer's block, its residual sum, the affine map of a group norm with known moments and an activation
become a tail (``ops/tails.py``) of the product before them; without a product before them, of the rows themselves.

Rows of several samples [M, B, C] have the same chains; ``factor`` and ``shift`` may be [B, C] there.

Before: shapes are known. ``factor`` and ``shift`` exist before the product. After: as many rows and columns as before;
a value that is used elsewhere is the operator's second result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from retouch.export.fusions._uses import is_per_column, is_rows, other_operand, sole_user
from retouch.export.fusions.activations import activation_of
from retouch.export.ops import Activation, Tail
from retouch.export.ops._domain import DOMAIN
from retouch.export.ops.tails import BATCH, NORM, PRODUCTS, ROWS, STACKED_NORM

__all__ = ["fuse_tails"]

_NORMS = tuple(lead + name for name in (NORM, STACKED_NORM) for lead in ("", BATCH))
_OPERANDS = {
    "EditConv": 7,
    "RowLinear": 3,
    "DepthwiseEditConv": 7,
    "GroupedEditConv": 7,
    "BatchEditConv": 8,
    "BatchRowLinear": 4,
    "BatchDepthwiseEditConv": 7,
    "BatchGroupedEditConv": 8,
    **{name: 9 if STACKED_NORM in name else 7 for name in _NORMS},
}


def fuse_tails(graph: ir.Graph) -> None:
    """Gives products, and rows that no product made, the tails that stand behind them."""
    order = {node: place for place, node in enumerate(graph)}
    products = [node for node in order if _is_product(node)]
    for node in products:
        _Chain(graph, order, node.outputs[0], node).fuse()
    for node in list(graph):
        for value in node.outputs if node.graph is graph and node.domain != DOMAIN else ():
            _Chain(graph, order, value, None).fuse()


def _is_product(node: ir.Node) -> bool:
    return node.domain == DOMAIN and node.op_type in (*PRODUCTS, *_NORMS)


@dataclass
class _Chain:
    """What stands behind some rows.

    Attributes:
        graph: the graph.
        order: where its nodes stand.
        rows: the rows.
        product: what makes them, if it is to have the tail.
        nodes: the nodes of the chain so far.
        operands: the tail's operands.
        last: the end of the chain so far.
    """

    graph: ir.Graph
    order: dict[ir.Node, int]
    rows: ir.Value
    product: ir.Node | None
    nodes: list[ir.Node] = field(init=False, default_factory=list)
    operands: list[ir.Value] = field(init=False, default_factory=list)
    last: ir.Value = field(init=False)

    def fuse(self) -> None:
        """Replaces the chain, if there is one."""
        if not is_rows(self.rows):
            return
        self.last = self.rows
        if self.product is not None and self.product.op_type in _NORMS:
            self._fuse_norm(self.product)
            return
        # A factor of all rows is a gate only before a residual sum; otherwise it is one half of an affine map.
        gated = self.product is not None and self._take("Mul", is_per_column)
        added = self._take("Add", self._is_alike)
        if gated and not added:
            gated, self.nodes, self.operands, self.last = False, [], [], self.rows
        total, head = self.last, self.last.producer()
        assert head is not None
        affine = self._take_affine(head)
        activation = self._take_activation(may_be_used=not affine)
        if len(self.nodes) > (self.product is None):
            self._replace(Tail(gated, added, False, affine, activation), total, head)

    def _fuse_norm(self, norm: ir.Node) -> None:
        """A norm takes maps alone."""
        affine = sole_user(self.rows) is not None and self._take_affine(norm)
        activation = self._take_activation(may_be_used=False)
        if self.nodes:
            self._replace(Tail(affine=affine, activation=activation), self.last, norm)

    def _is_alike(self, value: ir.Value, rows: ir.Value) -> bool:
        # Two numbers of rows that nothing is known of compare equal.
        return is_rows(value) and value.shape == rows.shape and ir.SymbolicDim(None) not in (value.shape or ())

    def _take(self, op_type: str, fits: Callable[[ir.Value, ir.Value], bool]) -> bool:
        """Takes the only use of the end of the chain, if it is that operator with a fitting operand."""
        node = sole_user(self.last)
        if node is None or node.op_type != op_type or node.domain != "":
            return False
        operand = other_operand(node, self.last)
        if operand is None or not fits(operand, self.rows):
            return False
        self._extend([node], [operand])
        return True

    def _take_affine(self, head: ir.Node) -> bool:
        """Takes a multiplication and an addition per column; the end of the chain may have other uses."""
        for scaled in [use.node for use in self.last.uses() if use.node.op_type == "Mul" and use.node.domain == ""]:
            moved = sole_user(scaled.outputs[0])
            if moved is None or moved.op_type != "Add" or moved.domain != "":
                continue
            factor, shift = other_operand(scaled, self.last), other_operand(moved, scaled.outputs[0])
            if factor is None or shift is None:
                continue
            if all(is_per_column(value, self.rows) and self._is_early(value, head) for value in (factor, shift)):
                self._extend([scaled, moved], [factor, shift])
                return True
        return False

    def _is_early(self, value: ir.Value, head: ir.Node) -> bool:
        """Whether a value is there before the operator, which will stand where what is before the affine map stood."""
        producer = value.producer()
        return producer is None or self.order[producer] < self.order[head]

    def _take_activation(self, *, may_be_used: bool) -> Activation:
        activation, nodes = activation_of(self.last)
        used = self.last.is_graph_output() or any(use.node not in nodes for use in self.last.uses())
        if not nodes or (used and not may_be_used):
            return Activation.NONE
        self._extend(nodes, [])
        return activation

    def _extend(self, nodes: list[ir.Node], operands: list[ir.Value]) -> None:
        self.nodes += nodes
        self.operands += operands
        self.last = nodes[-1].outputs[0]

    def _replace(self, tail: Tail, total: ir.Value, head: ir.Node) -> None:
        gone = [*self.nodes] if self.product is None else [self.product, *self.nodes]
        outside = total.is_graph_output() or any(use.node not in gone for use in total.uses())
        kept = outside and head in gone and total is not self.last
        others = [] if self.product is None else list(self.product.outputs[1:])
        made = ir.Node(
            DOMAIN,
            self._name() + replace(tail, kept=kept).name,
            [*self._own_operands(), *self.operands],
            () if self.product is None else list(self.product.attributes.values()),
            num_outputs=1 + kept + len(others),
            name=f"{head.name}_with_tail",
        )
        self.graph.insert_after(head, made)
        self.order[made] = self.order[head]
        for old, new in zip([self.last, *([total] if kept else []), *others], made.outputs, strict=True):
            new.name, new.type, new.shape = old.name, old.type, old.shape
            old.replace_all_uses_with(new, replace_graph_outputs=True)
        self.graph.remove(gone, safe=True)

    def _name(self) -> str:
        if self.product is not None:
            return self.product.op_type
        assert self.rows.shape is not None
        return ROWS if len(self.rows.shape) == 2 else BATCH + ROWS

    def _own_operands(self) -> list[ir.Value | None]:
        if self.product is None:
            return [self.rows]
        given = list(self.product.inputs)
        return given + [None] * (_OPERANDS[self.product.op_type] - len(given))
