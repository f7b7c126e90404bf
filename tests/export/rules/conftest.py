"""Small graphs built operator by operator, exported and verified against the masked reference.

``export_onnx`` only returns if identity, all-rows and masked-reference checks passed. What the tests add is that the
operators under test really are computed on rows, and that clean-up left the model's outputs as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from retouch.bundle import Bundle
from retouch.export import ExportOptions, export_onnx

BASE_INPUT = "x"


@dataclass
class Net:
    """A graph under construction; its editable input is ``x``. Values are names."""

    path: Path
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    values: list[onnx.ValueInfoProto] = field(default_factory=list)
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(5))

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        return self.ops(op_type, *inputs, **attributes)[0]

    def ops(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        name = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), names, name=name, **attributes))
        return names

    def foreign(self, op_type: str, value: str, shape: Sequence[int]) -> str:
        """A node of ONNX Runtime's own domain, whose shape nobody else knows."""
        name = self.op(op_type, value, domain="com.microsoft")
        self.values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def weight(self, *shape: int) -> str:
        """Random numbers that keep the scale of what they are multiplied with."""
        scale = max(1, int(np.prod(shape[1:]))) ** -0.5
        return self.const((scale * self.generator.standard_normal(shape)).astype(np.float32))

    def const(self, array: np.ndarray | float) -> str:
        if isinstance(array, float):
            array = np.array(array, dtype=np.float32)
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values: int) -> str:
        return self.const(np.array(values, dtype=np.int64))

    def input(self, name: str, shape: Sequence[int], dtype: int = TensorProto.FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def save(self, *outputs: str) -> Path:
        editable = helper.make_tensor_value_info(BASE_INPUT, TensorProto.FLOAT, self.shape)
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(
            self.nodes, "net", [editable, *self.inputs], results, self.weights, value_info=self.values
        )
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        onnx.save(onnx.shape_inference.infer_shapes(model), self.path / "model.onnx")
        return self.path / "model.onnx"

    def export(self, *outputs: str, **options: Any) -> Bundle:
        """The verified bundle, whatever its coverage."""
        options = {"editable": BASE_INPUT, "axes": self.axes, "min_coverage": 0.0, **options}
        model = self.save(*outputs)
        bundle = export_onnx(model, self.path / "bundle", ExportOptions(**options))
        assert_same_outputs(model, bundle)
        for check, error in bundle.manifest.verification.items():
            assert error <= (2e-5 if check == "all_rows" else 5e-6), check
        return bundle

    def on_rows(self, *outputs: str, **options: Any) -> Bundle:
        """The verified bundle, in which nothing is densified."""
        bundle = self.export(*outputs, **options)
        assert [f"{row.op}: {row.reason}" for row in bundle.manifest.plan if row.plan == "densified"] == []
        assert any(row.plan == "incremental" for row in bundle.manifest.plan)
        assert all(output.grid is not None for output in bundle.manifest.outputs)
        return bundle


def assert_same_outputs(model: Path, bundle: Bundle) -> None:
    """The base graph computes what the model computes."""
    generator = np.random.default_rng(11)
    feeds = {}
    for spec in bundle.manifest.inputs:
        numbers = generator.uniform(0, 3, spec.shape) if "int" in spec.dtype else generator.standard_normal(spec.shape)
        feeds[spec.name] = (numbers > 0 if spec.dtype == "bool" else numbers).astype(spec.dtype)
    names = [output.tensor.name for output in bundle.manifest.outputs]
    expected, got = (
        onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"]).run(names, feeds)
        for graph in (model, bundle.path / bundle.manifest.base_file)
    )
    for name, one, other in zip(names, expected, got, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5, err_msg=name)


MakeNet = Callable[..., Net]


@pytest.fixture
def net(tmp_path: Path) -> MakeNet:
    """Starts a graph: ``net(shape, axes, opset)``; an image of 4 channels on 8 x 8 unless told otherwise."""

    def make(shape: tuple[int, ...] = (1, 4, 8, 8), axes: tuple[int, ...] = (2, 3), opset: int = 18) -> Net:
        return Net(tmp_path, shape, axes, opset)

    return make
