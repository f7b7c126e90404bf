"""Graphs whose states are updated where they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from retouch.engines.ort import InPlaceProgram, OrtEngine
from retouch.errors import EngineError

# A row of a state is replaced; what comes out is the sum of the whole state.
GRAPH = """<ir_version: 10, opset_import: ["" : 18]>
replace (float[Q,2] rows, int64[Q,1] places, float[N,2] state) => (float[1] total, float[N,2] state__next) {
    state__next = ScatterND(state, places, rows)
    sum = ReduceSum<keepdims = 0>(state__next)
    shape = Constant<value_ints = [1]>()
    total = Reshape(sum, shape)
}"""


@pytest.fixture
def program(tmp_path: Path) -> InPlaceProgram:
    model = onnx.parser.parse_model(GRAPH)
    for names in (*(node.input for node in model.graph.node), *(node.output for node in model.graph.node)):
        names[:] = [name.replace("__", ".") for name in names]
    for output in model.graph.output:
        output.name = output.name.replace("__", ".")
    onnx.save(model, tmp_path / "replace.onnx")
    return OrtEngine(["CPUExecutionProvider"], 1).open_in_place(tmp_path / "replace.onnx")


def test_states_change_where_they_lie(program: InPlaceProgram) -> None:
    assert (program.states, program.outputs) == (("state",), ("total",))
    state = np.zeros((4, 2), np.float32)
    binding = program.bind({"state": state})
    first = binding.run({"rows": np.ones((1, 2), np.float32), "places": np.array([[1]])})
    assert state.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]
    second = binding.run({"rows": np.full((2, 2), 3, np.float32), "places": np.array([[1], [3]])})
    assert state.tolist() == [[0, 0], [3, 3], [0, 0], [3, 3]]
    # Results are arrays of their own: a further run does not change them.
    assert (first["total"].tolist(), second["total"].tolist()) == ([2.0], [12.0])


def test_inputs_are_the_callers_own(program: InPlaceProgram) -> None:
    state, rows = np.zeros((4, 2), np.float32), np.ones((1, 2), np.float32)
    binding = program.bind({"state": state})
    binding.run({"rows": rows, "places": np.array([[0]])})
    rows[:] = 7
    binding.run({"places": np.array([[2]])})
    assert state.tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]


def test_an_input_of_another_type_is_not_converted(program: InPlaceProgram) -> None:
    state, place = np.zeros((4, 2), np.float32), np.array([[1]])
    binding = program.bind({"state": state})
    binding.run({"rows": np.ones((1, 2), np.float32), "places": place})
    with pytest.raises(EngineError, match="double"):
        binding.run({"rows": np.full((1, 2), 1e-60), "places": place})


def test_faults_are_explained(program: InPlaceProgram, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="contiguous"):
        program.bind({"state": np.zeros((2, 4), np.float32).T})
    binding = program.bind({"state": np.zeros((4, 2), np.float32)})
    with pytest.raises(EngineError, match="ONNX Runtime failed"):
        binding.run({"rows": np.ones((1, 2), np.float32), "places": np.array([[9]])})
    with pytest.raises(EngineError, match="host memory"):
        OrtEngine(["CUDAExecutionProvider"]).open_in_place(tmp_path / "replace.onnx")
