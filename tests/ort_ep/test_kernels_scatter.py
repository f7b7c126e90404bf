"""ScatterRows against numpy and its function body, and what rows may be named."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.ort_ep.single_node import make_model, open_session, run_ours, run_reference

CASES = [((9,), 0, 1), ((9, 4), 0, 1), ((2, 9, 4), 1, 2), ((1, 3, 5, 6), 2, 4), ((2, 5, 6, 3), 1, 3), ((4, 700), 1, 2)]


def scatter(shape: tuple[int, ...], axis: int, end: int, count: int, dtype: str = "float32") -> dict[str, np.ndarray]:
    rng = np.random.default_rng([count, *shape])
    size = int(np.prod(shape[axis:end]))
    # Unsorted, and some of them counted from the end.
    index = rng.permutation(size)[: min(count, size)].astype(np.int64)
    index[::3] -= size
    rows = (*shape[:axis], len(index), *shape[end:])
    values = [(10 * rng.standard_normal(part)).astype(dtype) for part in (shape, rows)]
    return {"cached": values[0], "index": index, "rows": values[1]}


def expected(feeds: dict[str, np.ndarray], axis: int, end: int) -> np.ndarray:
    shape = feeds["cached"].shape
    flat = feeds["cached"].reshape(*shape[:axis], -1, *shape[end:]).copy()
    np.moveaxis(flat, axis, 0)[feeds["index"]] = np.moveaxis(feeds["rows"], axis, 0)
    return flat.reshape(shape)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int64", "bool", "int8"])
@pytest.mark.parametrize(("shape", "axis", "end"), CASES)
def test_rows_replace_the_cached_ones(shape: tuple[int, ...], axis: int, end: int, dtype: str) -> None:
    for count in (0, 1, 4, 10**6):
        feeds = scatter(shape, axis, end, count, dtype)
        model = make_model("ScatterRows", feeds, attributes={"axis": axis, "end": end})
        before, wanted = feeds["cached"].copy(), expected(feeds, axis, end)
        np.testing.assert_array_equal(run_ours(model, feeds), wanted)
        np.testing.assert_array_equal(run_reference(model, feeds), wanted)
        np.testing.assert_array_equal(feeds["cached"], before)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_large_tensors_are_complete(threads: int) -> None:
    feeds = scatter((8, 4000, 70), 1, 2, 1500)
    model = make_model("ScatterRows", feeds, attributes={"axis": 1, "end": 2})
    np.testing.assert_array_equal(run_ours(model, feeds, threads), expected(feeds, 1, 2))


@pytest.mark.parametrize("op", ["ScatterRows", "MaskedMerge"])
def test_a_value_of_the_graph_is_written_to_in_place_unless_it_is_read_again(op: str) -> None:
    feeds = scatter((64, 8), 0, 1, 5)
    index = feeds["index"] % 64
    given = {**feeds, "index": index if op == "ScatterRows" else index[:, None]}
    model = make_model(op, given, attributes={"axis": 0, "end": 1} if op == "ScatterRows" else None)
    graph = model.graph
    graph.node[0].input[0], graph.node[0].output[0] = "negated", "merged"
    nodes = [
        onnx.helper.make_node("Neg", ["cached"], ["negated"]),
        *graph.node,
        onnx.helper.make_node("Neg", ["merged"], ["out"]),
        onnx.helper.make_node("Neg", ["negated"], ["again"]),
    ]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.output.append(onnx.helper.make_tensor_value_info("again", onnx.TensorProto.FLOAT, None))
    got, again = open_session(model).run(None, given)
    merged = feeds["cached"].copy()
    merged[index] = -feeds["rows"]
    np.testing.assert_array_equal(got, merged)
    np.testing.assert_array_equal(again, feeds["cached"])


def test_a_tensor_bound_as_input_and_output_is_written_to_in_place() -> None:
    feeds = scatter((1, 3, 40, 50), 2, 4, 200)
    model = make_model("ScatterRows", feeds, attributes={"axis": 2, "end": 4})
    wanted, session = expected(feeds, 2, 4), open_session(model)
    binding, value = session.io_binding(), onnx_value(feeds["cached"])
    binding.bind_ortvalue_input("cached", value)
    for name in ("index", "rows"):
        binding.bind_cpu_input(name, feeds[name])
    binding.bind_ortvalue_output("out", value)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(feeds["cached"], wanted)


def onnx_value(array: np.ndarray) -> object:
    import onnxruntime

    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


@pytest.mark.parametrize("value", [9, -10])
def test_a_row_outside_of_the_tensor_is_an_error(value: int) -> None:
    feeds = scatter((2, 9, 4), 1, 2, 3)
    feeds["index"][1] = value
    session = open_session(make_model("ScatterRows", feeds, attributes={"axis": 1, "end": 2}))
    with pytest.raises(Exception, match=f"ScatterRows: expected every index to be from -9 to before 9, got {value}"):
        session.run(None, feeds)


@pytest.mark.parametrize("other", [3, 3 - 9])
def test_a_row_that_is_named_twice_is_an_error(other: int) -> None:
    index, rows = np.array([5, 3, 0, other]), np.ones((4, 4), np.float32)
    feeds = {"cached": np.zeros((9, 4), np.float32), "index": index, "rows": rows}
    session = open_session(make_model("ScatterRows", feeds, attributes={"axis": 0, "end": 1}))
    with pytest.raises(Exception, match="ScatterRows: expected every row once, got row 3 more than once"):
        session.run(None, feeds)
    merged = open_session(make_model("MaskedMerge", {**feeds, "index": index[:, None]}))
    with pytest.raises(Exception, match="MaskedMerge: expected every row once, got row 3 more than once"):
        merged.run(None, {**feeds, "index": index[:, None]})


@pytest.mark.parametrize(("axis", "end"), [(0, 0), (1, 4), (-1, 1), (2, 1)])
def test_axes_that_the_tensor_does_not_have_are_an_error(axis: int, end: int) -> None:
    feeds = {"cached": np.zeros((9, 4, 2), np.float32), "index": np.array([0]), "rows": np.ones((1, 4, 2), np.float32)}
    with pytest.raises(Exception, match=r"ScatterRows|Shape|Reshape|ScatterElements"):
        open_session(make_model("ScatterRows", feeds, attributes={"axis": axis, "end": end})).run(None, feeds)


def test_rows_of_another_shape_are_an_error() -> None:
    feeds = scatter((2, 9, 4), 1, 2, 3)
    session = open_session(make_model("ScatterRows", feeds, attributes={"axis": 1, "end": 2}, open_dims=True))
    feeds["rows"] = feeds["rows"][:, :2]
    with pytest.raises(Exception, match=r"expected rows \[2, 3, 4\], got shape \[2, 2, 4\]"):
        session.run(None, feeds)
