"""The feed-forward part of a layer: one for all tokens, or experts of which every token uses a few."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape

from retouch.export.decoder._draft import Draft

__all__ = ["feed_forward"]


def feed_forward(draft: Draft, layer: int, x: ir.Value) -> ir.Value:
    """What the feed-forward part of a layer adds to tokens [B, Q, hidden]."""
    experts = draft.spec.experts
    if experts is None or not draft.spec.has_experts(layer):
        return _gated(draft, x, f"{layer}.")
    rows = draft.op("Reshape", x, draft.ints((-1, draft.spec.hidden)))
    chosen, shares = _routed(draft, layer, rows)
    mixed = draft.op("Reshape", _mixed(draft, layer, rows, chosen, shares), draft.op("Shape", x))
    return draft.op("Add", mixed, _gated(draft, x, f"{layer}.shared_")) if experts.shared_width else mixed


def _gated(draft: Draft, x: ir.Value, prefix: str) -> ir.Value:
    gate, up = (draft.product(x, f"{prefix}{name}") for name in ("gate", "up"))
    opened = draft.op("Mul", draft.op("Mul", gate, draft.op("Sigmoid", gate)), up)
    return draft.product(opened, f"{prefix}down")


def _routed(draft: Draft, layer: int, rows: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The experts of every row [Q, used], and their weights [Q, used]."""
    experts = draft.spec.experts
    assert experts is not None
    scores = draft.op("Sigmoid", draft.product(rows, f"{layer}.router"))
    # The bias decides who is chosen, and has no part in the weights.
    biased = draft.op("Add", scores, draft.weight(f"{layer}.router_bias"))
    chosen = draft.largest(_within_groups(draft, biased), experts.used)[1]
    shares = draft.op("GatherElements", scores, chosen, axis=1)
    if experts.used > 1:
        total = draft.op("ReduceSum", shares, draft.ints([1]), keepdims=1)
        shares = draft.op("Div", shares, draft.op("Add", total, draft.constant(np.array(1e-20, np.float32))))
    return chosen, draft.op("Mul", shares, draft.constant(np.array(experts.scale, np.float32)))


def _within_groups(draft: Draft, scores: ir.Value) -> ir.Value:
    """Scores [Q, experts], minus infinity outside of the groups with the largest sums of two scores."""
    experts = draft.spec.experts
    assert experts is not None
    if experts.groups_used == experts.groups:
        return scores
    by_group = draft.op("Reshape", scores, draft.ints((-1, experts.groups, experts.count // experts.groups)))
    best = draft.op("ReduceSum", draft.largest(by_group, 2)[0], draft.ints([2]), keepdims=0)
    groups = draft.largest(best, experts.groups_used)[1]
    closed, ones = draft.filled(0, best), draft.filled(1, groups)
    opened = draft.op("Cast", draft.op("ScatterElements", closed, groups, ones, axis=1), to=ir.DataType.BOOL.value)
    never = draft.constant(np.array(-np.inf, np.float32))
    kept = draft.op("Where", draft.op("Unsqueeze", opened, draft.ints([2])), by_group, never)
    return draft.op("Reshape", kept, draft.ints((-1, experts.count)))


def _mixed(draft: Draft, layer: int, rows: ir.Value, chosen: ir.Value, shares: ir.Value) -> ir.Value:
    """The weighted sum of what every row's experts give [Q, hidden]: a loop over those that some row uses."""
    used = draft.op("Unique", draft.op("Reshape", chosen, draft.ints([-1])), sorted=1)
    trips = draft.op("Squeeze", draft.op("Shape", used))
    body = _body(draft, layer, rows, chosen, shares, used)
    going = draft.constant(np.array(True))
    loop = ir.Node(
        "", "Loop", [trips, going, draft.filled(0, rows)], [ir.AttrGraph("body", body)], name=f"experts_{layer}"
    )
    loop.outputs[0].name = f"experts_{layer}_out"
    draft.add(loop)
    return loop.outputs[0]


def _body(draft: Draft, layer: int, rows: ir.Value, chosen: ir.Value, shares: ir.Value, used: ir.Value) -> ir.Graph:
    experts = draft.spec.experts
    assert experts is not None
    opened, down = draft.experts(layer, "expert_gate", "expert_up"), draft.experts(layer, "expert_down")
    halves = draft.ints((experts.width, experts.width))
    index, going, total = (
        ir.Value(name=f"experts_{layer}_{name}", type=ir.TensorType(kind), shape=ir.Shape(shape))
        for name, kind, shape in (
            ("index", ir.DataType.INT64, []),
            ("going", ir.DataType.BOOL, []),
            ("total", ir.DataType.FLOAT, [None, draft.spec.hidden]),
        )
    )
    tape = Tape()
    expert = tape.op("Gather", [used, index], {"axis": 0})
    # Where a row uses the expert: row and place among its experts, one below the other.
    places = tape.op("Transpose", [tape.op("NonZero", [tape.op("Equal", [chosen, expert])])])
    own = tape.op("Slice", [places, draft.ints([0]), draft.ints([1]), draft.ints([1])])
    x = tape.op("GatherND", [rows, own])
    both = tape.op("MatMul", [x, tape.op("Gather", [opened, expert], {"axis": 0})])
    gate, up = tape.op_multi_out("Split", [both, halves], {"axis": -1}, num_outputs=2)
    inside = tape.op("Mul", [tape.op("Mul", [gate, tape.op("Sigmoid", [gate])]), up])
    result = tape.op("MatMul", [inside, tape.op("Gather", [down, expert], {"axis": 0})])
    share = tape.op("Unsqueeze", [tape.op("GatherND", [shares, places]), draft.ints([1])])
    added = tape.op("ScatterND", [total, own, tape.op("Mul", [result, share])], {"reduction": "add"})
    on = tape.op("Identity", [going])
    for number, value in enumerate(output for node in tape.nodes for output in node.outputs):
        value.name = f"experts_{layer}_{number}"
    for value, kind in ((added, ir.DataType.FLOAT), (on, ir.DataType.BOOL)):
        value.type = ir.TensorType(kind)
    return ir.Graph([index, going, total], [on, added], nodes=tape.nodes, name=f"experts_{layer}_body")
