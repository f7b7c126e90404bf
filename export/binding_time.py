"""Splits an edit graph by binding time: what depends on conditions and statistics only moves to the prep graph."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from retouch.export.node_builder import BindingTime, NodeBuilder

__all__ = ["SplitGraphs", "split_by_binding_time"]


@dataclass(frozen=True)
class SplitGraphs:
    """Nodes of the two graphs and the values that pass from the first to the second."""

    prep: list[ir.Node]
    edit: list[ir.Node]
    prepared: list[ir.Value]


def split_by_binding_time(builder: NodeBuilder, outputs: list[ir.Value]) -> SplitGraphs:
    """The split of the nodes that outputs depend on; nodes on constants stay with each of their users."""
    live = _live(builder.nodes, outputs)
    edit = [node for node in live if _time(builder, node) is BindingTime.EDIT]
    wanted = {value for node in edit for value in node.inputs if value is not None} | set(outputs)
    early = (BindingTime.CONDITION, BindingTime.STATISTIC)
    made = [value for node in live if _time(builder, node) in early for value in node.outputs]
    prepared = [value for value in made if value in wanted]
    prep = _live(builder.nodes, prepared)
    kept = _live([node for node in live if _time(builder, node) not in early], outputs)
    return SplitGraphs(prep, kept, prepared)


def _time(builder: NodeBuilder, node: ir.Node) -> BindingTime:
    return max((builder.time[value] for value in node.outputs), default=BindingTime.CONSTANT)


def _live(nodes: list[ir.Node], outputs: list[ir.Value]) -> list[ir.Node]:
    """The nodes that outputs depend on, in their order."""
    needed = set(outputs)
    kept = []
    for node in reversed(nodes):
        if any(value in needed for value in node.outputs):
            kept.append(node)
            needed.update(value for value in node.inputs if value is not None)
    return kept[::-1]
