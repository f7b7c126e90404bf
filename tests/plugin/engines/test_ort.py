"""ONNX Runtime as an engine."""

from __future__ import annotations

import gc
import importlib
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from retouch.engines.ort import OrtEngine
from retouch.engines.ort._prune import prune_file
from retouch.engines.ort._runtime import require_providers
from retouch.errors import BundleError, EngineError, EngineMissingError, RetouchError

REST = "session.force_spinning_stop"

GRAPH = """<ir_version: 10, opset_import: ["" : 18]>
two (float[N] x, float[N] y, bool flag) => (float[N] sum, float[N] product, float[N] chosen)
    <float[1] one = {1}, float[1] unused = {2}> {
    more = Add(x, one)
    sum = Add(more, x)
    product = Mul(y, y)
    chosen = If(flag) <
        then_branch = a () => (float[N] p) { p = Identity(more) },
        else_branch = b () => (float[N] q) { q = Neg(y) }
    >
}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "two.onnx"
    onnx.save(onnx.parser.parse_model(GRAPH), path)
    return path


def vector(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def test_a_program_has_only_what_its_outputs_need(graph: Path) -> None:
    model = prune_file(graph, ["sum"])
    onnx.checker.check_model(model)
    assert [value.name for value in model.graph.input] == ["x"]
    assert [node.op_type for node in model.graph.node] == ["Add", "Add"]
    assert [tensor.name for tensor in model.graph.initializer] == ["one"]


def test_what_a_subgraph_captures_is_needed(graph: Path) -> None:
    model = prune_file(graph, ["chosen"])
    onnx.checker.check_model(model)
    assert {value.name for value in model.graph.input} == {"x", "y", "flag"}
    assert [node.op_type for node in model.graph.node] == ["Add", "If"]


def test_an_output_the_graph_lacks(graph: Path) -> None:
    with pytest.raises(BundleError, match="to have the outputs nonsense, got chosen, product, sum"):
        prune_file(graph, ["nonsense"])


def test_run_passes_over_foreign_inputs(graph: Path) -> None:
    engine = OrtEngine(threads=1)
    program = engine.open(graph, ["product", "sum"])
    assert program.outputs == ("product", "sum")
    inputs = {name: engine.value(vector(1, 2)) for name in ("x", "y", "z")}
    values = program.run(inputs)
    assert values["sum"].numpy().tolist() == [3, 5]
    assert values["product"].numpy().tolist() == [1, 4]


def test_a_binding_keeps_inputs_and_gives_fresh_memory(graph: Path) -> None:
    engine = OrtEngine(threads=1)
    x = vector(1, 2)
    binding = engine.open(graph, ["sum", "product"]).bind({"x": engine.value(x)})
    first = binding.run({"y": engine.value(vector(2, 3))})["product"].numpy()
    second = binding.run({"y": engine.value(vector(4, 5))})
    assert first.tolist() == [4, 9]
    assert second["product"].numpy().tolist() == [16, 25]
    assert second["sum"].numpy().tolist() == [3, 5]
    x[:] = 0  # nobody may do this, but it shows that the input is not a copy
    assert binding.run({})["sum"].numpy().tolist() == [1, 1]


def test_values_share_the_array(graph: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = OrtEngine().value(array)
    assert (value.shape, value.dtype, value.nbytes) == ((2, 3), "float32", 24)
    assert np.shares_memory(value.numpy(), array)
    assert not value.numpy().flags.writeable
    assert array.flags.writeable
    assert OrtEngine().value(array.T).numpy().tolist() == array.T.tolist()
    assert OrtEngine().value(np.array(3.0)).shape == ()


def test_digests_tell_contents_shape_and_dtype_apart() -> None:
    engine = OrtEngine()
    arrays = [np.zeros(4, np.float32), np.zeros((2, 2), np.float32), np.zeros(4, np.int32), np.array([0, 0, 0, 1.0])]
    assert len({engine.value(array).digest for array in arrays}) == len(arrays)
    assert engine.value(arrays[0]).digest == engine.value(arrays[0].copy()).digest


def test_a_missing_provider_is_named(graph: Path) -> None:
    engine = OrtEngine(["TensorrtExecutionProvider", "CPUExecutionProvider"])
    assert engine.name == "onnxruntime.tensorrt"
    with pytest.raises(EngineMissingError, match=r"TensorrtExecutionProvider .* got only .*CPUExecutionProvider"):
        engine.open(graph)
    with pytest.raises(EngineMissingError, match=r"TensorrtExecutionProvider .* got only .*CPUExecutionProvider"):
        engine.value(vector(1, 2))


def test_threads_of_a_session_that_waits_leave_the_cores_to_others(graph: Path) -> None:
    assert OrtEngine(threads=2).session_options(graph.parent).get_session_config_entry(REST) == "1"


@pytest.mark.parametrize("threads", [0, -1, 10**6, 1.5, "2", True])
def test_threads_that_are_no_number_of_threads(threads: Any) -> None:
    with pytest.raises(RetouchError, match="Expected threads to be an integer from 1 to 1024"):
        OrtEngine(threads=threads)


def test_values_that_the_graph_does_not_take_are_explained(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    words (int64[N] ids) => (float[N,2] y) <float[3,2] table = {1, 2, 3, 4, 5, 6}> { y = Gather(table, ids) }
    """
    onnx.save(onnx.parser.parse_model(text), tmp_path / "words.onnx")
    engine = OrtEngine(threads=1)
    program = engine.open(tmp_path / "words.onnx")
    with pytest.raises(EngineError, match="such as a token id beyond the vocabulary"):
        program.run({"ids": engine.value(np.array([0, 3]))})
    np.testing.assert_array_equal(program.run({"ids": engine.value(np.array([2]))})["y"].numpy(), [[5, 6]])


def test_providers_are_a_list() -> None:
    with pytest.raises(RetouchError, match=r"Expected a list of execution providers.*\['CPUExecutionProvider'\]"):
        OrtEngine("CPUExecutionProvider")


def test_the_tensorrt_of_another_major_version_is_explained() -> None:
    with pytest.raises(
        EngineMissingError, match=r"TensorrtExecutionProvider to load.*libnvinfer\.so\.10.*tensorrt-cu13<11"
    ):
        require_providers(["TensorrtExecutionProvider"], ["CPUExecutionProvider"], "to load")
    with pytest.raises(EngineMissingError, match=r"CUDAExecutionProvider(?!.*libnvinfer)"):
        require_providers(["CUDAExecutionProvider"], ["CPUExecutionProvider"], "to load")


def test_a_missing_onnxruntime_is_explained(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(EngineMissingError, match=r'pip install "retouch\[cpu\]"'):
        OrtEngine().open(graph)


def test_arrays_outlive_their_values() -> None:
    """The memory that an array shows is the caller's, which nothing but the array may still hold."""
    given = np.arange(4.0)
    alive = weakref.ref(given)
    shown = OrtEngine().value(given).numpy()
    del given
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(shown, np.arange(4.0))
    assert not shown.flags.writeable


def test_a_value_of_another_device_comes_by_way_of_numpy() -> None:
    """No other device is at hand: an engine for one stands for it, whose own values lie elsewhere."""
    value = OrtEngine(threads=1).value(vector(1, 2))
    assert OrtEngine(threads=1).adopt(value) is value
    assert OrtEngine(["CUDAExecutionProvider"]).adopt(value) is None
