"""One node that is computed whole costs only itself: behind it rows are gathered again."""

from __future__ import annotations

import numpy as np
import pytest

from retouch import EditSession, Region


def conv(graph, value: str) -> str:
    return graph.op("Conv", value, graph.weight(4, 4, 3, 3), pads=[1, 1, 1, 1])


def running_sum(graph, value: str) -> str:
    return graph.op("Mul", graph.op("CumSum", value, graph.const(np.array(3))), graph.const(1 / 8))


def softmax_of_positions(graph, value: str) -> str:
    return graph.op("Mul", graph.op("Softmax", value, axis=2), value)


def triangle(graph, value: str) -> str:
    return graph.op("Trilu", value, graph.const(np.array(1)))


def norm_of_one_row(graph, value: str) -> str:
    return graph.op("LayerNormalization", value, graph.weight(8))


WHOLE = [running_sum, softmax_of_positions, triangle, norm_of_one_row]


def assert_costs_only_itself(bundle, op: str) -> None:
    plan = bundle.manifest.plan
    (dense,) = [row for row in plan if row.plan == "densified"]
    assert dense.op == op
    assert str(dense.reason).endswith("behind it rows are gathered again")
    assert bundle.manifest.coverage == 1.0
    assert all(row.plan == "incremental" for row in plan if row.flops)


@pytest.mark.parametrize("whole", WHOLE)
def test_layers_behind_it_are_computed_on_rows(net, whole) -> None:
    graph = net((2, 4, 8, 8))
    y = whole(graph, conv(graph, "x"))
    op = next(node.op_type for node in reversed(graph.nodes) if node.op_type not in ("Conv", "Mul"))
    assert_costs_only_itself(graph.export(conv(graph, conv(graph, y))), op)


def test_recurrence_over_tokens(net) -> None:
    graph = net((12, 2, 8), axes=(0,))
    weights = [graph.weight(2, 12, 8), graph.weight(2, 12, 4), graph.weight(2, 24)]
    scanned = graph.op(
        "GRU", graph.op("MatMul", "x", graph.weight(8, 8)), *weights, hidden_size=4, direction="bidirectional"
    )
    y = graph.op("Reshape", graph.op("Transpose", scanned, perm=[0, 2, 1, 3]), graph.ints(12, 2, 8))
    assert_costs_only_itself(graph.export(graph.op("MatMul", y, graph.weight(8, 8))), "GRU")


def test_keys_with_a_softmax_over_tokens(net) -> None:
    """Shen et al., Efficient Attention: only the softmax itself looks at all keys."""
    graph = net((1, 16, 8), axes=(1,))
    query, key, value = (graph.op("MatMul", "x", graph.weight(8, 8)) for _ in range(3))
    key = graph.op("Transpose", graph.op("Softmax", key, axis=1), perm=[0, 2, 1])
    mixed = graph.op("MatMul", graph.op("Softmax", query, axis=2), graph.op("MatMul", key, value))
    assert_costs_only_itself(graph.export(graph.op("MatMul", mixed, graph.weight(8, 8))), "Softmax")


def test_a_reversal_takes_the_edit_elsewhere_so_what_follows_stays_whole(net) -> None:
    graph = net()

    def reversed_rows(value: str) -> str:
        bounds = (graph.ints(-1), graph.ints(-9), graph.ints(3), graph.ints(-1))
        return graph.op("Slice", value, *bounds)

    y = reversed_rows(graph.op("Conv", reversed_rows(graph.op("Sigmoid", "x")), graph.weight(4, 4, 1, 1)))
    bundle = graph.export(graph.op("Conv", y, graph.weight(4, 4, 1, 1)))
    with EditSession(bundle, threads=1) as session:
        old, new = (np.random.default_rng(seed).standard_normal((1, 4, 8, 8)).astype(np.float32) for seed in (0, 1))
        region = Region.from_boxes([(1, 0, 3, 2)], (8, 8), "exact")
        edited = session.edit(session.base({"x": old}), {"x": new}, region=region, fallback=False)
        full = session.base({"x": new}, record=False)
    (got,), (expected,) = edited.outputs.values(), full.outputs.values()
    np.testing.assert_allclose(got[:, :, 1:3, :2], expected[:, :, 1:3, :2], atol=1e-6)


def foreign(graph) -> str:
    """A model with an operator of another domain between two convolutions."""
    return conv(graph, graph.op("Sigmoid", graph.foreign("Trilu", conv(graph, "x"), (1, 4, 8, 8))))


def test_only_the_user_knows_of_a_foreign_operator(net) -> None:
    unknown = net()
    plan = unknown.export(foreign(unknown)).manifest.plan
    assert "--keeps-positions" in str(next(row for row in plan if row.op == "com.microsoft.Trilu").reason)
    assert plan[-1].plan == "densified"
    vouched = net()
    bundle = vouched.export(foreign(vouched), keeps_positions=["com.microsoft.Trilu"])
    assert_costs_only_itself(bundle, "com.microsoft.Trilu")
