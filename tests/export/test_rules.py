"""Every operator family on a small graph: what is planned, and that the edit graph equals the masked reference.

The export itself verifies: an export that returns has passed identity, all-rows and masked-reference checks against
graphs built without the rules. What these tests add is that the node was not simply densified.
"""

from __future__ import annotations

import pytest

IMAGE = "g (float[1,4,8,8] x) => (float{shape} y)"

INCREMENTAL = {
    "relu": ("[1,4,8,8]", "y = Relu(x)"),
    "scalar_constant": ("[1,4,8,8]", "c = Constant<value = float {2.0}>()  y = Mul(x, c)"),
    "channel_constant": (
        "[1,4,8,8]",
        "c = Constant<value = float[1,4,1,1] {1.0, 2.0, 3.0, 4.0}>()  y = Add(x, c)",
    ),
    "position_along_one_axis": (
        "[1,4,8,8]",
        "c = Constant<value = float[8,1] {1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0}>()  y = Mul(x, c)",
    ),
    "channel_softmax": ("[1,4,8,8]", "y = Softmax<axis = 1>(x)"),
    "transpose": ("[8,8,1,4]", "y = Transpose<perm = [3,2,0,1]>(x)"),
    "tokens_and_back": (
        "[1,4,8,8]",
        "s = Constant<value = int64[3] {1,4,64}>()  t = Reshape(x, s)  u = Transpose<perm = [0,2,1]>(t)"
        " v = Softmax<axis = -1>(u)  w = Transpose<perm = [0,2,1]>(v)"
        " r = Constant<value = int64[4] {1,4,8,8}>()  y = Reshape(w, r)",
    ),
    "channel_groups": (
        "[1,4,8,8]",
        "s = Constant<value = int64[5] {1,2,2,8,8}>()  t = Reshape(x, s)  u = Softmax<axis = 2>(t)"
        " r = Constant<value = int64[4] {1,4,8,8}>()  y = Reshape(u, r)",
    ),
    "reduce_channels": ("[1,1,8,8]", "a = Constant<value = int64[1] {1}>()  y = ReduceMean(x, a)"),
    "reduce_without_keepdims": ("[1,8,8]", "a = Constant<value = int64[1] {1}>()  y = ReduceMax<keepdims = 0>(x, a)"),
    "split_and_concat": (
        "[1,4,8,8]",
        "s = Constant<value = int64[2] {1,3}>()  a, b = Split<axis = 1>(x, s)  y = Concat<axis = 1>(b, a)",
    ),
    "slice_channels": (
        "[1,2,8,8]",
        "s = Constant<value = int64[1] {1}>()  e = Constant<value = int64[1] {3}>()"
        " a = Constant<value = int64[1] {1}>()  y = Slice(x, s, e, a)",
    ),
    "pick_a_channel": ("[1,8,8]", "i = Constant<value = int64 {2}>()  y = Gather<axis = 1>(x, i)"),
    "mean_pool": ("[1,4,4,4]", "y = AveragePool<kernel_shape = [2,2], strides = [2,2]>(x)"),
    "mean_pool_padded": ("[1,4,8,8]", "y = AveragePool<kernel_shape = [3,3], pads = [1,1,1,1]>(x)"),
    "mean_pool_counting_pads": (
        "[1,4,8,8]",
        "y = AveragePool<kernel_shape = [3,3], pads = [1,1,1,1], count_include_pad = 1>(x)",
    ),
    "mean_pools_that_count_pads_differently": (
        "[1,4,8,8]",
        "a = AveragePool<kernel_shape = [3,3], pads = [1,1,1,1]>(x)"
        " b = AveragePool<kernel_shape = [3,3], pads = [1,1,1,1], count_include_pad = 1>(x)"
        " w = Constant<value = float {0.25}>()  c = Mul(b, w)  y = Sub(a, c)",
    ),
    "max_pool": ("[1,4,4,4]", "y = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(x)"),
    "nearest": (
        "[1,4,16,16]",
        "r = Constant<value = float[0] {}>()  s = Constant<value = float[4] {1.0,1.0,2.0,2.0}>()"
        ' y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(x, r, s)',
    ),
    "linear": (
        "[1,4,16,16]",
        "r = Constant<value = float[0] {}>()  s = Constant<value = float[4] {1.0,1.0,2.0,2.0}>()"
        ' y = Resize<mode = "linear">(x, r, s)',
    ),
    "reflect_pad": (
        "[1,4,10,9]",
        'p = Constant<value = int64[8] {0,0,1,0,0,0,1,1}>()  y = Pad<mode = "reflect">(x, p)',
    ),
    "instance_norm": (
        "[1,4,8,8]",
        "s = Constant<value = float[4] {1.0,2.0,3.0,4.0}>()  b = Constant<value = float[4] {0.0,1.0,0.0,1.0}>()"
        " y = InstanceNormalization(x, s, b)",
    ),
    "group_norm": (
        "[1,4,8,8]",
        "s = Constant<value = int64[3] {1,2,-1}>()  t = Reshape(x, s)  o = Constant<value = float[2] {1.0,1.0}>()"
        " z = Constant<value = float[2] {0.0,0.0}>()  n = InstanceNormalization(t, o, z)"
        " r = Constant<value = int64[4] {1,4,8,8}>()  y = Reshape(n, r)",
    ),
    "attention": (
        "[1,64,4]",
        "s = Constant<value = int64[3] {1,4,64}>()  k = Reshape(x, s)  q = Transpose<perm = [0,2,1]>(k)"
        " d = MatMul(q, k)  p = Softmax<axis = -1>(d)  y = MatMul(p, q)",
    ),
    "attention_einsum": (
        "[1,4,64]",
        's = Constant<value = int64[3] {1,4,64}>()  k = Reshape(x, s)  d = Einsum<equation = "bct,bcs->bts">(k, k)'
        ' p = Softmax<axis = 2>(d)  y = Einsum<equation = "bts,bcs->bct">(p, k)',
    ),
    "crop": (
        "[1,4,4,8]",
        "s = Constant<value = int64[1] {2}>()  e = Constant<value = int64[1] {6}>()"
        " a = Constant<value = int64[1] {2}>()  y = Slice(x, s, e, a)",
    ),
    "einsum_permutation": ("[1,8,8,4]", 'y = Einsum<equation = "nchw->nhwc">(x)'),
}

DENSIFIED = {
    "sum_along_a_row": ("[1,4,8,8]", "a = Constant<value = int64 {3}>()  y = CumSum(x, a)", "along the grid"),
    "softmax_over_positions": ("[1,4,8,8]", "y = Softmax<axis = 3>(x)", "along the grid"),
    "mean_along_a_row": (
        "[1,4,8,1]",
        "a = Constant<value = int64[1] {3}>()  y = ReduceMean(x, a)",
        "a part of the grid",
    ),
    "unknown_operator": ("[1,4,8,8]", "y = Trilu(x)", "no rule"),
    "positions_mixed_with_channels": (
        "[1,8,4,8]",
        "s = Constant<value = int64[4] {1,8,4,8}>()  y = Reshape(x, s)",
        "mixes or splits the grid",
    ),
}


@pytest.mark.parametrize("case", INCREMENTAL)
def test_computes_on_rows(case: str, export) -> None:
    shape, nodes = INCREMENTAL[case]
    bundle = export(f"{IMAGE.format(shape=shape)} {{ {nodes} }}")
    refused = [row for row in bundle.manifest.plan if row.plan == "densified"]
    assert refused == []
    assert any(row.plan == "incremental" for row in bundle.manifest.plan)
    assert all(output.grid is not None for output in bundle.manifest.outputs)


@pytest.mark.parametrize("case", DENSIFIED)
def test_stays_correct_when_densified(case: str, export) -> None:
    shape, nodes, reason = DENSIFIED[case]
    nodes = nodes.replace("y = ", "z = ")
    bundle = export(f"{IMAGE.format(shape=shape)} {{ v = Relu(x) {nodes.replace('(x', '(v')}  y = Sigmoid(z) }}")
    reasons = [row.reason for row in bundle.manifest.plan if row.plan == "densified"]
    assert any(reason in text for text in reasons)
    assert any(row.plan == "incremental" for row in bundle.manifest.plan)
