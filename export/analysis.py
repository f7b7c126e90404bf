"""Forward data flow: gives every value of the cleaned-up graph one element of the lattice."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from retouch.export.cuts import cuts_before
from retouch.export.grid_registry import GridRegistry
from retouch.export.held_statistics import held_statistics
from retouch.export.lattice import Beside, Fact, Full, Grid, Invariant, Refusal, Rows, Statistic
from retouch.export.model_shapes import shape_of
from retouch.export.regained import regained_rows
from retouch.export.rules import rule_for

__all__ = ["Analysis", "Facts", "analyse"]

_JOINING = ("Concat", "Slice", "Split")


class Facts:
    """What is known of the values seen so far; a value that was never recorded is invariant.

    Attributes:
        grids: the grids so far.
        keeping: operators, with their domain, of which the user says that they keep positions.
        grouped: reshapes whose runs of rows are grouped into coarser rows.
        held: statistics that stay as the base run computed them where moments of GroupNorm do.
    """

    def __init__(
        self, grids: GridRegistry, keeping: Collection[str] = (), grouped: frozenset[ir.Node] = frozenset()
    ) -> None:
        self.grids = grids
        self.keeping = frozenset(keeping)
        self.grouped = grouped
        self.held: frozenset[ir.Value] = frozenset()
        self._facts: dict[ir.Value, Fact] = {}

    def of(self, value: ir.Value | None) -> Fact:
        """The fact of a value."""
        if value is None:
            return Invariant()
        return self._facts.get(value, Invariant())

    def rows(self, value: ir.Value | None) -> Rows | None:
        """The rows a value carries, ``None`` if it is not row-carrying."""
        fact = self.of(value)
        return fact if isinstance(fact, Rows) else None

    def record(self, value: ir.Value, fact: Fact) -> None:
        """Sets the fact of a value."""
        self._facts[value] = fact


@dataclass(frozen=True)
class Analysis:
    """The result of the data flow.

    Attributes:
        facts: the fact of every value.
        refusals: for each node that is not computed on rows although it depends on the editable input, why.
        editable: the grid of the editable input.
        aligned: outputs computed whole whose rows are taken to be those of the editable input, because they have
            its dims on its axes; their inactive rows keep the base output all the same.
    """

    facts: Facts
    refusals: Mapping[ir.Node, Refusal]
    editable: Grid
    aligned: frozenset[ir.Value]


def analyse(
    graph: ir.Graph,
    editable: str,
    axes: tuple[int, ...],
    *,
    recompute_text: bool = True,
    keeping: Collection[str] = (),
) -> Analysis:
    """The facts of all values of a graph.

    Args:
        graph: the graph.
        editable: name of the editable input.
        axes: its axes that carry positions.
        recompute_text: whether edits compute the tokens beside the rows of joint sequences anew.
        keeping: operators without a rule that keep positions.

    Requires: static shapes everywhere and nodes in topological order (clean-up).
    Ensures: each node's outputs are all invariant, or the node is computed on rows, or it has a refusal; behind a
    refused node its first output may carry rows again.
    """
    source = next(value for value in graph.inputs if value.name == editable)

    def flow(grouped: frozenset[ir.Node] = frozenset()) -> tuple[Facts, dict[ir.Node, Refusal]]:
        return _flow(graph, Facts(GridRegistry(editable, recompute_text), keeping, grouped), source, axes)

    facts, refusals = flow()
    # What refuses may do so for rows on an axis that it could live with as a feature of coarser rows.
    while refusals and (grouped := facts.grouped | cuts_before(refusals, facts)) != facts.grouped:
        again, fewer = flow(grouped)
        if len(fewer) >= len(refusals):
            break
        facts, refusals = again, fewer
    grid = facts.grids.get(tuple(shape_of(source)[axis] for axis in axes))
    facts.held = held_statistics(graph, facts)
    aligned = frozenset(value for value in graph.outputs if _is_aligned(value, source, axes, facts))
    for value in aligned:
        facts.record(value, Rows(grid, axes))
    return Analysis(facts, refusals, grid, aligned)


def _flow(
    graph: ir.Graph, facts: Facts, source: ir.Value, axes: tuple[int, ...]
) -> tuple[Facts, dict[ir.Node, Refusal]]:
    facts.record(source, Rows(facts.grids.get(tuple(shape_of(source)[axis] for axis in axes)), axes))
    refusals: dict[ir.Node, Refusal] = {}
    for node in graph:
        _visit(node, facts, refusals)
    return facts, refusals


def _is_aligned(output: ir.Value, source: ir.Value, axes: tuple[int, ...], facts: Facts) -> bool:
    if not isinstance(facts.of(output), Full):
        return False
    ours, theirs = shape_of(output), shape_of(source)
    return len(ours) == len(theirs) and all(ours[axis] == theirs[axis] for axis in axes)


def _visit(node: ir.Node, facts: Facts, refusals: dict[ir.Node, Refusal]) -> None:
    known = [facts.of(value) for value in node.inputs]
    if all(isinstance(fact, Invariant) for fact in known):
        return
    beside = [fact for fact in known if isinstance(fact, Beside)]
    if all(isinstance(fact, Invariant | Beside | Statistic) for fact in known):
        for value in node.outputs:
            facts.record(value, beside[0] if beside else Statistic())
        return
    outcome = _transfer(node, known, facts)
    if isinstance(outcome, Refusal):
        rows = regained_rows(node, facts)
        refusals[node] = outcome if rows is not None or rule_for(node) is not None else _hinted(outcome)
        outcome = [Full()] * len(node.outputs)
        if rows is not None:
            outcome[0] = rows
    for value, fact in zip(node.outputs, outcome, strict=True):
        facts.record(value, fact)


def _hinted(refusal: Refusal) -> Refusal:
    hint = "if its result at a position belongs to that position, name it with --keeps-positions"
    return dataclasses.replace(refusal, reason=f"{refusal.reason}; {hint}")


def _transfer(node: ir.Node, known: list[Fact], facts: Facts) -> list[Fact] | Refusal:
    name, op = node.name or "", node.op_type
    if not any(isinstance(fact, Rows) for fact in known):
        return Refusal(name, op, "its input was already computed whole")
    rule = rule_for(node)
    if rule is None:
        return Refusal(name, op, f"no rule for operator {node.domain or 'ai.onnx'}.{op}")
    outcome = rule.transfer(node, facts)
    if isinstance(outcome, str):
        return Refusal(name, op, outcome)
    if op not in _JOINING and _leaves_joint(known, outcome):
        return Refusal(name, op, "it changes the grid of a joint sequence")
    return outcome


def _leaves_joint(known: list[Fact], outcome: list[Fact]) -> bool:
    """Whether a node makes another grid of a joint one, as a convolution along all tokens would."""
    grids = {fact.grid for fact in known if isinstance(fact, Rows)}
    if all(grid.joint is None for grid in grids):
        return False
    return any(fact.grid not in grids for fact in outcome if isinstance(fact, Rows))
