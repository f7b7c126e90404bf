"""Random graphs, with operators the analysis does not know among others: every one exports and passes verification.

The export compares the edit graph with the masked reference for nested and for independent rows per grid.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from retouch.export import ExportOptions, export_onnx

STEPS = (
    "conv",
    "strided_conv",
    "upsample",
    "mean_pool",
    "silu",
    "norm",
    "attention",
    "skip",
    "channel_scale",
    "channel_softmax",
    "global_gate",
    "largest",
    "linear_attention",
    "running_sum",
    "row_softmax",
    "flip",
    "triangle",
)


class Builder:
    """Grows a graph on [1, 4, H, W] values; every step reads the newest value and an older one of its shape."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.values: list[tuple[str, int]] = [("x", 8)]
        self.generator = np.random.default_rng(5)

    def node(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def noise(self, *shape: int) -> str:
        return self.weight(0.17 * self.generator.standard_normal(shape).astype(np.float32))

    def ints(self, *values: int) -> str:
        return self.weight(np.array(values, dtype=np.int64))

    def step(self, kind: str) -> None:
        name, size = self.values[-1]
        made = getattr(self, kind)(name, size)
        self.values.append(made if isinstance(made, tuple) else (made, size))

    def conv(self, x: str, size: int) -> str:
        return self.node("Conv", x, self.noise(4, 4, 3, 3), self.noise(4), pads=[1] * 4)

    def strided_conv(self, x: str, size: int) -> tuple[str, int] | str:
        if size < 4:
            return self.conv(x, size)
        return self.node("Conv", x, self.noise(4, 4, 3, 3), pads=[1] * 4, strides=[2, 2]), size // 2

    def upsample(self, x: str, size: int) -> tuple[str, int] | str:
        if size > 8:
            return self.silu(x, size)
        scales = self.weight(np.array([1, 1, 2, 2], dtype=np.float32))
        return self.node("Resize", x, "", scales, mode="nearest"), 2 * size

    def mean_pool(self, x: str, size: int) -> str:
        return self.node("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4)

    def silu(self, x: str, size: int) -> str:
        return self.node("Mul", x, self.node("Sigmoid", x))

    def norm(self, x: str, size: int) -> str:
        grouped = self.node("Reshape", x, self.ints(1, 2, -1))
        ones, zeros = (self.weight(np.full(2, value, np.float32)) for value in (1, 0))
        normed = self.node("InstanceNormalization", grouped, ones, zeros)
        return self.channel_scale(self.node("Reshape", normed, self.ints(1, 4, size, size)), size)

    def attention(self, x: str, size: int) -> str:
        keys = self.node("Reshape", x, self.ints(1, 4, size * size))
        queries = self.node("Transpose", keys, perm=[0, 2, 1])
        # Scaled as usual: logits of a hundred would turn rounding into visible differences.
        logits = self.node("Mul", self.node("MatMul", queries, keys), self.weight(np.array(0.5, dtype=np.float32)))
        scores = self.node("Softmax", logits, axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", scores, queries), perm=[0, 2, 1])
        return self.node("Reshape", mixed, self.ints(1, 4, size, size))

    def skip(self, x: str, size: int) -> str:
        other = next(name for name, other_size in self.values if other_size == size)
        return self.node("Tanh", self.node("Add", x, other))

    def channel_scale(self, x: str, size: int) -> str:
        return self.node("Add", self.node("Mul", x, self.noise(4, 1, 1)), self.noise(1, 4, 1, 1))

    def channel_softmax(self, x: str, size: int) -> str:
        return self.node("Softmax", x, axis=1)

    def global_gate(self, x: str, size: int) -> str:
        return self.node("Mul", x, self.node("Sigmoid", self.node("GlobalAveragePool", x)))

    def largest(self, x: str, size: int) -> str:
        return self.node("Tanh", self.node("Sub", x, self.node("GlobalMaxPool", x)))

    def linear_attention(self, x: str, size: int) -> str:
        keys = self.node("Sigmoid", self.node("Reshape", x, self.ints(1, 4, size * size)))
        queries = self.node("Transpose", keys, perm=[0, 2, 1])
        share = self.weight(np.array(1 / (size * size), dtype=np.float32))
        total = self.node("Mul", self.node("MatMul", keys, queries), share)
        mixed = self.node("Transpose", self.node("MatMul", queries, total), perm=[0, 2, 1])
        return self.node("Reshape", mixed, self.ints(1, 4, size, size))

    def running_sum(self, x: str, size: int) -> str:
        total = self.node("CumSum", x, self.weight(np.array(3, dtype=np.int64)))
        return self.node("Mul", total, self.weight(np.array(1 / 16, dtype=np.float32)))

    def row_softmax(self, x: str, size: int) -> str:
        return self.node("Softmax", x, axis=3)

    def flip(self, x: str, size: int) -> str:
        return self.node("Transpose", x, perm=[0, 1, 3, 2])

    def triangle(self, x: str, size: int) -> str:
        return self.node("Trilu", x)

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])],
            [helper.make_tensor_value_info(self.values[-1][0], TensorProto.FLOAT, None)],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=8))
def test_random_graph(tmp_path: Path, steps: list[str]) -> None:
    builder = Builder()
    for step in ("conv", *steps):
        builder.step(step)
    path = tmp_path / "model.onnx"
    onnx.save(builder.model(), path)
    bundle = export_onnx(path, tmp_path / "bundle", ExportOptions(editable="x", axes=(2, 3), min_coverage=0.0))
    assert any(row.plan == "incremental" for row in bundle.manifest.plan)
    assert bundle.manifest.verification
