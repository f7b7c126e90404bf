"""The plan: what is done with every node, and whether enough of the model is cheap in an edit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from retouch.bundle import PlanRow
from retouch.errors import CoverageError
from retouch.export.analysis import Analysis
from retouch.export.cost import flops
from retouch.export.lattice import Beside, Rows, Statistic
from retouch.export.model_shapes import dtype_of, shape_of
from retouch.export.rules.reduce_rows import reads_all_rows

__all__ = ["check_coverage", "plan_rows"]


def plan_rows(graph: ir.Graph, analysis: Analysis) -> tuple[PlanRow, ...]:
    """One row per node of the canonical graph, in topological order."""
    conditioned: set[ir.Value] = set(graph.inputs)
    rows = []
    for node in graph:
        if any(value in conditioned for value in node.inputs):
            conditioned.update(node.outputs)
        rows.append(_row(node, analysis, hoisted=node.outputs[0] in conditioned))
    return tuple(rows)


def _row(node: ir.Node, analysis: Analysis, *, hoisted: bool) -> PlanRow:
    refusal = analysis.refusals.get(node)
    fact = analysis.facts.of(node.outputs[0])
    carried = _carried(node, analysis) if refusal is None else None
    if refusal is not None:
        plan = "densified"
    elif carried is not None:
        plan = "incremental"
    elif isinstance(fact, Beside):
        plan = "frozen" if fact.frozen else "recomputed"
    elif isinstance(fact, Statistic):
        plan = "statistic"
    else:
        plan = "hoisted" if hoisted else "constant"
    size = sum(math.prod(shape_of(value)) * dtype_of(value).itemsize for value in node.outputs)
    return PlanRow(
        node=node.name or "",
        op=f"{node.domain}.{node.op_type}" if node.domain else node.op_type,
        plan=plan,
        grid=carried.grid.id if carried is not None else None,
        flops=flops(node),
        bytes=int(size),
        reason=_reason(node, analysis),
    )


def _reason(node: ir.Node, analysis: Analysis) -> str | None:
    refusal = analysis.refusals.get(node)
    if refusal is None:
        return None
    regained = analysis.facts.rows(node.outputs[0]) is not None and node.outputs[0] not in analysis.aligned
    return f"{refusal.reason}; behind it rows are gathered again" if regained else refusal.reason


def _carried(node: ir.Node, analysis: Analysis) -> Rows | None:
    """The rows a node is computed on: those of its result, or those that move a statistic."""
    facts = analysis.facts
    fact = facts.of(node.outputs[0])
    if isinstance(fact, Statistic) and not reads_all_rows(node):
        return next((rows for value in node.inputs if (rows := facts.rows(value)) is not None), None)
    return fact if isinstance(fact, Rows) else None


def check_coverage(plan: Sequence[PlanRow], minimum: float) -> None:
    """Raises a CoverageError that names the heaviest densified nodes if coverage is below a minimum."""
    # What is recomputed by policy is no failure to find rows.
    total = sum(row.flops for row in plan if row.plan != "recomputed")
    dense = [row for row in plan if row.plan in ("densified", "statistic")]
    coverage = 1.0 - sum(row.flops for row in dense) / total if total else 1.0
    some = any(row.plan == "incremental" for row in plan)
    if coverage >= minimum and some:
        return
    share = f"Only {coverage:.1%} of the model's FLOPs" if some else "No node of the model"
    heaviest = sorted(dense, key=lambda row: -row.flops)[:5]
    first = [row for row in dense if row.reason and "already computed whole" not in row.reason][:3]
    lines = "; ".join(f"{row.op} {row.node}: {row.reason}" for row in dict.fromkeys((*first, *heaviest)))
    raise CoverageError(
        f"{share} would be computed on rows (at least {minimum:.0%} of the FLOPs wanted), so an edit would not be "
        f"much cheaper than a full run. What stays dense: {lines or 'nothing, for nothing depends on that input'}. "
        "Name the right editable input and axes, or accept it with --min-coverage."
    )
