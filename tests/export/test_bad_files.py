"""Files that are no ONNX model, or a damaged one, get an error that says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from retouch.errors import ModelError
from retouch.export import export_onnx

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 8, 8])
WEIGHT = numpy_helper.from_array(np.eye(4, dtype=np.float32).reshape(4, 4, 1, 1), "w")
RELU = helper.make_node("Relu", ["x"], ["y"], name="first")


def model(
    nodes: list[onnx.NodeProto], *, inputs=(X,), weights=(), opset: int = 18, ir_version: int = 10
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, [Y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def refused(path: Path, match: str) -> None:
    with pytest.raises(ModelError, match=f"(?s){match}"):
        export_onnx(path, path.parent / "bundle")
    assert not (path.parent / "bundle").exists()


CONTENTS = {
    "random": np.random.default_rng(0).integers(0, 256, 3000, np.uint8).tobytes(),
    "empty": b"",
    "zeros": bytes(1000),
    "text": b"import torch\n",
    "cut_short": model([RELU]).SerializeToString()[:-7],
}


@pytest.mark.parametrize("name", ["model.onnx", "model.json", "model.textproto", "model.pt"])
@pytest.mark.parametrize("content", CONTENTS)
def test_not_an_onnx_file(tmp_path: Path, content: str, name: str) -> None:
    (tmp_path / name).write_bytes(CONTENTS[content])
    refused(tmp_path / name, f"{name} is not a (readable|usable) ONNX model.*Give a file written by an ONNX exporter")


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    refused(tmp_path / "model", r"is a directory\. Give the path of the \.onnx file")


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")

    def denied(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(onnx, "load", denied)
    refused(tmp_path / "model.onnx", "cannot be read.*Permission denied")


NAMES: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "two_nodes_one_output": (
        lambda: model([RELU, helper.make_node("Sigmoid", ["x"], ["y"], name="second")]),
        "'y' to two values: an output of the Relu node 'first' and an output of the Sigmoid node 'second'",
    ),
    "output_named_like_an_input": (lambda: model([helper.make_node("Relu", ["x"], ["x"]), RELU]), "'x' to two values"),
    "output_named_like_a_weight": (
        lambda: model([helper.make_node("Relu", ["x"], ["w"]), RELU], weights=[WEIGHT]),
        "'w' to two values: a weight and an output",
    ),
    "two_inputs": (lambda: model([RELU], inputs=[X, X]), "an input named 'x' twice"),
    "two_weights": (lambda: model([RELU], weights=[WEIGHT, WEIGHT]), "a weight named 'w' twice"),
    "absent_value": (
        lambda: model([helper.make_node("Add", ["x", "bias"], ["y"], name="sum")]),
        "the Add node 'sum' reads the value 'bias', which is computed nowhere",
    ),
    "circle": (
        lambda: model([helper.make_node("Add", ["x", "y"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]),
        "read each other in a circle",
    ),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_that_do_not_fit_together(tmp_path: Path, case: str) -> None:
    build, match = NAMES[case]
    onnx.save(build(), tmp_path / "model.onnx")
    refused(tmp_path / "model.onnx", match)


def test_nodes_in_any_order_are_sorted(tmp_path: Path) -> None:
    """As converters to half precision leave them; ONNX Runtime reads such files too."""
    nodes = [helper.make_node("Sigmoid", ["a"], ["y"]), helper.make_node("Relu", ["x"], ["a"], name="late")]
    onnx.save(model(nodes), tmp_path / "model.onnx")
    bundle = export_onnx(tmp_path / "model.onnx", tmp_path / "bundle")
    assert [row.op for row in bundle.manifest.plan] == ["Relu", "Sigmoid"]


def test_equal_node_names_are_fine(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="n"), helper.make_node("Sigmoid", ["a"], ["y"], name="n")]
    onnx.save(model(nodes), tmp_path / "model.onnx")
    bundle = export_onnx(tmp_path / "model.onnx", tmp_path / "bundle")
    assert len({row.node for row in bundle.manifest.plan}) == 2


def test_weights_listed_among_the_inputs_are_weights(tmp_path: Path) -> None:
    """Exporters before IR version 4 had to list them there."""
    weight_input = helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 4, 1, 1])
    convolution = helper.make_node("Conv", ["x", "w"], ["y"])
    onnx.save(model([convolution], inputs=[X, weight_input], weights=[WEIGHT], ir_version=3), tmp_path / "model.onnx")
    bundle = export_onnx(tmp_path / "model.onnx", tmp_path / "bundle")
    assert [spec.name for spec in bundle.manifest.inputs] == ["x"]
    assert bundle.manifest.coverage == 1.0


@pytest.fixture
def external(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    graph = model([helper.make_node("Conv", ["x", "w"], ["y"])], weights=[WEIGHT])
    onnx.save_model(graph, path, save_as_external_data=True, location="model.data", size_threshold=0)
    return path


def test_external_data_is_found(external: Path) -> None:
    assert export_onnx(external, external.parent / "bundle").manifest.coverage == 1.0


def test_external_data_missing(external: Path) -> None:
    (external.parent / "model.data").unlink()
    refused(external, "the weight 'w' in .*model.data, which does not exist.*Copy the model's external data")


def test_external_data_cut_short(external: Path) -> None:
    (external.parent / "model.data").write_bytes(bytes(10))
    refused(external, "ends at byte 10, before the weight does.*Copy the model's external data file again")


@pytest.mark.parametrize("location", ["../secret", "/etc/hostname"])
def test_external_data_outside_of_the_folder(external: Path, location: str) -> None:
    graph = onnx.load(external, load_external_data=False)
    next(entry for entry in graph.graph.initializer[0].external_data if entry.key == "location").value = location
    onnx.save(graph, external)
    refused(external, f"the weight 'w' in {location}, outside of its own folder")


def test_opset_newer_than_the_installed_onnx(tmp_path: Path) -> None:
    onnx.save(model([RELU], opset=99), tmp_path / "model.onnx")
    refused(tmp_path / "model.onnx", "uses opset 99.*Update onnx, or export the model again with opset_version=")


@pytest.mark.parametrize("opset", [7, 9, 17])
def test_older_opsets_are_converted(tmp_path: Path, opset: int) -> None:
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s")
    if opset == 7:
        upsample = helper.make_node("Upsample", ["x"], ["u"], scales=[1.0, 1.0, 2.0, 2.0], mode="nearest")
    else:
        operands = ["x", "s"] if opset == 9 else ["x", "", "s"]
        mode = {} if opset == 9 else {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        upsample = helper.make_node("Upsample" if opset == 9 else "Resize", operands, ["u"], mode="nearest", **mode)
    pool = helper.make_node("AveragePool", ["u"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    onnx.save(model([upsample, pool], weights=[scales], opset=opset), tmp_path / "model.onnx")
    bundle = export_onnx(tmp_path / "model.onnx", tmp_path / "bundle")
    assert bundle.manifest.model.opset == 18
    assert {row.plan for row in bundle.manifest.plan} == {"incremental"}


def test_opset_that_cannot_be_converted(tmp_path: Path) -> None:
    onnx.save(model([RELU], opset=0), tmp_path / "model.onnx")
    refused(tmp_path / "model.onnx", "uses opset 0; Retouch needs 18 or later.*Export the model again")
