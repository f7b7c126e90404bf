"""Which statistics an edit with ``cached`` moments leaves as the base run computed them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Rows, Statistic

if TYPE_CHECKING:
    from retouch.export.analysis import Facts

__all__ = ["held_statistics"]

_PRODUCTS = frozenset({"MatMul", "Gemm", "Einsum"})
_HEAVY = _PRODUCTS | {"Conv", "ConvTranspose", "Attention"}


def held_statistics(graph: Iterable[ir.Node], facts: Facts) -> frozenset[ir.Value]:
    """Results of pooling that scale or shift rows, as GroupNorm moments do.

    A changed statistic changes every row, but inactive rows stay what they are: with the new one, active rows would no
    longer fit the rows around them. Not held are products summed over the rows, as in linear attention, and what
    normalises them: these are an attention's answer, and a numerator without its denominator would be wrong. Neither is
    what no row reads, such as a pooled output.
    """
    nodes = list(graph)
    read = _read_by_rows(nodes, facts)
    factors = _factors(nodes, facts)
    return frozenset(
        node.outputs[0]
        for node in nodes
        if _totals(node, facts)
        and node.op_type not in _PRODUCTS
        and node.outputs[0] in read
        and node.inputs[0] not in factors
    )


def _totals(node: ir.Node, facts: Facts) -> bool:
    """Whether a node makes a statistic out of rows."""
    return isinstance(facts.of(node.outputs[0]), Statistic) and any(facts.rows(value) for value in node.inputs)


def _read_by_rows(nodes: list[ir.Node], facts: Facts) -> set[ir.Value]:
    """The statistics that rows depend on."""
    read: set[ir.Value] = set()
    for node in reversed(nodes):
        if any(isinstance(facts.of(value), Rows) or value in read for value in node.outputs):
            read.update(v for v in node.inputs if v is not None and isinstance(facts.of(v), Statistic))
    return read


def _factors(nodes: list[ir.Node], facts: Facts) -> set[ir.Value]:
    """The row-carrying values that products over all rows are made of, up to the layers that computed them."""
    found: set[ir.Value] = set()
    for node in reversed(nodes):
        summed = node.op_type in _PRODUCTS and _totals(node, facts)
        if summed or (node.op_type not in _HEAVY and any(value in found for value in node.outputs)):
            found.update(value for value in node.inputs if value is not None and facts.rows(value) is not None)
    return found
