"""Models that are valid ONNX but cannot be edited, and options that do not fit a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from retouch.bundle import Bundle
from retouch.errors import CoverageError, ExportError, ModelError, RetouchError, VerificationError
from retouch.export import ExportOptions, export_onnx

IMAGE = [1, 4, 8, 8]


def tensor(name: str, shape: Any = IMAGE, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def attempt(tmp_path: Path, nodes, inputs=None, outputs=None, weights=(), values=(), domains=(), **options) -> Bundle:
    inputs, outputs = inputs or [tensor("x")], outputs or [tensor("y")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights, value_info=values)
    imports = [helper.make_opsetid(domain, 1) for domain in domains] + [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), tmp_path / "model.onnx")
    return export_onnx(tmp_path / "model.onnx", tmp_path / "bundle", ExportOptions(**options))


def refused(tmp_path: Path, error: type[RetouchError], match: str, *args: Any, **options: Any) -> None:
    with pytest.raises(error, match=f"(?s){match}"):
        attempt(tmp_path, *args, **options)
    assert not (tmp_path / "bundle").exists()


def node(op: str, *inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [output], name=f"the_{op}", **attributes)


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64])
def test_editable_numbers(tmp_path: Path, dtype: int) -> None:
    nodes = [node("Cast", "x", output="a", to=TensorProto.FLOAT), node("Relu", "a")]
    bundle = attempt(tmp_path, nodes, [tensor("x", [1, 16], dtype)], [tensor("y", [1, 16])])
    assert {row.plan for row in bundle.manifest.plan} <= {"incremental"}


def test_editable_truth_values(tmp_path: Path) -> None:
    inputs, outputs = [tensor("x", [1, 16], TensorProto.BOOL)], [tensor("y", [1, 16])]
    nodes = [node("Cast", "x", to=TensorProto.FLOAT)]
    refused(tmp_path, ExportError, "'x' has elements of type BOOL; expected.*--input", nodes, inputs, outputs)


@pytest.mark.parametrize("dtype", [TensorProto.STRING, TensorProto.COMPLEX64])
def test_inputs_that_are_no_numbers(tmp_path: Path, dtype: int) -> None:
    inputs = [tensor("x"), tensor("label", [1], dtype)]
    refused(tmp_path, ModelError, "'label' is of type .*expected a tensor of numbers", [node("Relu", "x")], inputs)


def test_inputs_that_are_no_tensors(tmp_path: Path) -> None:
    inputs = [helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, IMAGE)]
    weights = [numpy_helper.from_array(np.array(0), "i")]
    nodes = [node("SequenceAt", "x", "i")]
    refused(tmp_path, ModelError, "'x' is of type Sequence.*expected a tensor", nodes, inputs, weights=weights)


def test_input_without_shape_or_elements(tmp_path: Path) -> None:
    nodes = [node("Relu", "x")]
    refused(tmp_path, ModelError, "'x' has no shape", nodes, [tensor("x", None)])
    refused(tmp_path, ModelError, r"'x' has no elements \(shape \[1, 4, 0, 8\]\)", nodes, [tensor("x", [1, 4, 0, 8])])


def test_no_candidate_for_the_editable_input(tmp_path: Path) -> None:
    message = r"No input carries editable positions: expected one of two dims or more, got x\[{}\]. Export the part"
    refused(tmp_path, ExportError, message.format(""), [node("Relu", "x")], [tensor("x", [])])
    refused(tmp_path, ExportError, message.format("4"), [node("Relu", "x")], [tensor("x", [4])])


def test_a_named_input_without_positions(tmp_path: Path) -> None:
    message = r"'x' of shape \[4\] has no axis that is known to carry positions: expected two dims.*--axes"
    refused(tmp_path, ExportError, message, [node("Relu", "x")], [tensor("x", [4])], editable="x")
    message = r"'x' of shape \[\] has no axis"
    refused(tmp_path, ExportError, message, [node("Relu", "x")], [tensor("x", [])], editable="x", axes=(0,))


@pytest.mark.parametrize("axes", [(2, 7), (2, 2), ()])
def test_axes_that_do_not_fit(tmp_path: Path, axes: tuple[int, ...]) -> None:
    message = "--axes .* does not fit input 'x' of shape.*: expected different axes from 0 to 3"
    refused(tmp_path, ExportError, message, [node("Relu", "x")], axes=axes)


def test_input_that_nothing_depends_on(tmp_path: Path) -> None:
    inputs = [tensor("x"), tensor("z")]
    message = "No node of the model would be computed on rows.*nothing depends on that input"
    refused(tmp_path, CoverageError, message, [node("Relu", "z")], inputs, editable="x")


def test_every_open_dim_needs_a_size(tmp_path: Path) -> None:
    inputs, outputs = [tensor("x", ["n", 4, "h", "w"])], [tensor("y", ["n", 4, "h", "w"])]
    nodes = [node("Relu", "x")]
    refused(tmp_path, ModelError, "axis 3 open.*--fix w=64", nodes, inputs, outputs, fix={"h": 8})
    refused(tmp_path, ModelError, r"--fix names \['depth'\].*open: \['h', 'n', 'w'\]", nodes, inputs, outputs,
            fix={"h": 8, "w": 8, "depth": 3})  # fmt: skip
    refused(tmp_path, ModelError, "no elements", nodes, inputs, outputs, fix={"h": 0, "w": 8})


@pytest.mark.parametrize("name", ["n", None])
def test_batch_names_a_leading_dim_of_any_name(tmp_path: Path, name: str | None) -> None:
    inputs, outputs = [tensor("x", [name, 4, 8, 8])], [tensor("y", [name, 4, 8, 8])]
    bundle = attempt(tmp_path, [node("Relu", "x")], inputs, outputs, fix={"batch": 2})
    assert bundle.manifest.inputs[0].shape == (2, 4, 8, 8)


def branches() -> dict[str, onnx.GraphProto]:
    made = {}
    for name, op in (("then_branch", "Relu"), ("else_branch", "Sigmoid")):
        made[name] = helper.make_graph([helper.make_node(op, ["x"], [name])], name, [], [tensor(name)])
    return made


def test_branch_that_is_known_is_taken(tmp_path: Path) -> None:
    condition = numpy_helper.from_array(np.array(False), "c")
    bundle = attempt(tmp_path, [node("If", "c", **branches())], weights=[condition])
    assert [(row.op, row.plan) for row in bundle.manifest.plan] == [("Sigmoid", "incremental")]


def test_branch_that_depends_on_an_input(tmp_path: Path) -> None:
    inputs = [tensor("x"), tensor("c", [], TensorProto.BOOL)]
    message = r"'the_If' \(If\) holds a subgraph.*Export the model without control flow"
    refused(tmp_path, ModelError, message, [node("If", "c", **branches())], inputs)


def test_loop(tmp_path: Path) -> None:
    steps = [helper.make_node("Relu", ["v"], ["w"]), helper.make_node("Identity", ["go"], ["on"])]
    state = [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), tensor("v")]
    body = helper.make_graph(steps, "body", state, [tensor("on", [], TensorProto.BOOL), tensor("w")])
    count = numpy_helper.from_array(np.array(3), "n")
    message = r"'the_Loop' \(Loop\) holds a subgraph"
    refused(tmp_path, ModelError, message, [node("Loop", "n", "", "x", body=body)], weights=[count])


def test_operator_that_nobody_defines(tmp_path: Path) -> None:
    nodes = [node("Foo", "x", output="a", domain="my.ops"), node("Relu", "a")]
    refused(tmp_path, ModelError, r"does not define the operator my\.ops\.Foo.*value_info", nodes, domains=["my.ops"])
    message = r"ONNX Runtime cannot load base\.onnx.*Foo"
    options = {"domains": ["my.ops"], "values": [tensor("a")], "min_coverage": 0.0}
    nodes = [node("Sigmoid", "x", output="s"), node("Foo", "s", output="a", domain="my.ops"), node("Relu", "a")]
    refused(tmp_path, VerificationError, message, nodes, **options)


def test_operator_of_the_runtime_is_computed_whole(tmp_path: Path) -> None:
    """A domain that the exporter does not know is carried into the edit graph."""
    nodes = [
        node("Sigmoid", "x", output="s"),
        node("Trilu", "s", output="a", domain="com.microsoft"),
        node("Tanh", "a"),
    ]
    options = {"domains": ["com.microsoft"], "values": [tensor("a")], "min_coverage": 0.0}
    plan = {row.op: (row.plan, row.reason) for row in attempt(tmp_path, nodes, **options).manifest.plan}
    assert plan["com.microsoft.Trilu"][0] == "densified"
    assert plan["com.microsoft.Trilu"][1].startswith("no rule for operator com.microsoft.Trilu; ")
    assert plan["Sigmoid"] == ("incremental", None)


def test_outputs_that_are_not_finite(tmp_path: Path) -> None:
    refused(tmp_path, VerificationError, "not finite on the made-up example feeds.*--example", [node("Log", "x")])
    bundle = attempt(tmp_path, [node("Exp", "x")], example={"x": np.ones(IMAGE, np.float32)})
    assert bundle.manifest.verification


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ({"q": np.ones(3)}, r"name \['q'\], but the model's inputs are x, t"),
        ({"x": np.ones((1, 4, 4, 4), np.float32)}, r"'x' has shape \(1, 4, 4, 4\), expected \(1, 4, 8, 8\)"),
        ({"t": np.array([0.5])}, "'t' has elements of type float64, expected int64, and loses something"),
        ({"t": np.array(["a"])}, "'t' has elements of type <U1, expected int64"),
    ],
)
def test_example_feeds_that_do_not_fit(tmp_path: Path, example: dict[str, Any], message: str) -> None:
    inputs = [tensor("x"), tensor("t", [1], TensorProto.INT64)]
    nodes = [node("Cast", "t", output="f", to=TensorProto.FLOAT), node("Mul", "x", "f")]
    refused(tmp_path, ExportError, message, nodes, inputs, example=example)


def test_example_feeds_are_converted_where_nothing_is_lost(tmp_path: Path) -> None:
    inputs = [tensor("x"), tensor("t", [1], TensorProto.INT64)]
    nodes = [node("Cast", "t", output="f", to=TensorProto.FLOAT), node("Mul", "x", "f")]
    assert attempt(tmp_path, nodes, inputs, example={"t": np.array([7.0], np.float32)}).manifest.verification
