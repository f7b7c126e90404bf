"""A bundle written by hand: an independent reading of the contract between exporter and runtime.

The model is a 3x3 convolution with a condition added, SiLU, the mean over all positions subtracted, and a branch at
half the resolution. Grid ``fine`` is 8x8, grid ``coarse`` 4x4. Kept are the input x, the activations b, their mean m,
the centred n, the coarse q and the output y.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from retouch.bundle import (
    Bundle,
    BundleWriter,
    CacheableSpec,
    EditableSpec,
    EditGraphSpec,
    GridSpec,
    Manifest,
    ModelSpec,
    NeighbourhoodSpec,
    OutputSpec,
    PlanRow,
    TensorSpec,
)

Array = NDArray[np.float32]

# Two underscores stand for a dot, which the text form does not allow in names.
HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
BASE = """
base (float[1,2,8,8] x, float[1] sigma) => (float[1,2,8,8] y, float[64,2] cacheable__x, float[64,8] cacheable__b,
    float[8] cacheable__m, float[64,8] cacheable__n, float[16,8] cacheable__q, float[64,2] cacheable__y)
    <int64[2] narrow = {64, 2}, int64[2] wide = {64, 8}, int64[2] coarse = {16, 8}, int64[1] eight = {8},
     int64[4] channels = {1, 8, 1, 1}, int64[2] spatial = {2, 3}, float[4] twice = {1, 1, 2, 2}> {
    s = Mul(sigma, embed)
    e = Reshape(s, channels)
    a0 = Conv<pads = [1, 1, 1, 1]>(x, k3)
    a = Add(a0, e)
    g = Sigmoid(a)
    b = Mul(a, g)
    m = ReduceMean(b, spatial)
    n = Sub(b, m)
    p = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(n)
    q = Conv(p, k1)
    u = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(q, "", twice)
    z = Add(n, u)
    y = Conv(z, k2)
    xt = Transpose<perm = [0, 2, 3, 1]>(x)
    cacheable__x = Reshape(xt, narrow)
    bt = Transpose<perm = [0, 2, 3, 1]>(b)
    cacheable__b = Reshape(bt, wide)
    cacheable__m = Reshape(m, eight)
    nt = Transpose<perm = [0, 2, 3, 1]>(n)
    cacheable__n = Reshape(nt, wide)
    qt = Transpose<perm = [0, 2, 3, 1]>(q)
    cacheable__q = Reshape(qt, coarse)
    yt = Transpose<perm = [0, 2, 3, 1]>(y)
    cacheable__y = Reshape(yt, narrow)
}
"""
PREP = """
prep (float[1] sigma, float[8] cached__m) => (float[8] prepared__e, float[8] prepared__m) {
    prepared__e = Mul(sigma, embed)
    prepared__m = Identity(cached__m)
}
"""
EDIT = """
edit (float[1,2,8,8] x, int64[M] rows__fine, int64[P] rows__coarse, int64[M,9] neighbours__conv, int64[H] halo__conv,
    int64[P,4] neighbours__pool, int64[I] halo__pool, int64[M,1] neighbours__up, int64[J] halo__up,
    float[64,2] cached__x, float[64,8] cached__n, float[16,8] cached__q, float[64,2] cached__y,
    float[8] prepared__e, MEAN_INPUTS) =>
    (float[1,2,8,8] y, float[M,2] update__x, float[M,8] update__n, float[P,8] update__q,
    float[M,2] update__y MEAN_OUTPUTS)
    <int64[2] narrow = {64, 2}, int64[2] patch = {-1, 18}, int64[2] row2 = {1, 2}, int64[2] row8 = {1, 8},
     int64[2] w1 = {8, 8}, int64[2] w2 = {8, 2}, int64[2] w3 = {18, 8}, int64[4] image = {1, 8, 8, 2},
     int64[1] one = {1}, float[1,2] pad2 = {0, 0}, float[1,8] pad8 = {0, 0, 0, 0, 0, 0, 0, 0}, float rows = {64}> {
    xt = Transpose<perm = [0, 2, 3, 1]>(x)
    xr = Reshape(xt, narrow)
    update__x = Gather(xr, rows__fine)
    xh = Gather(cached__x, halo__conv)
    table = Concat<axis = 0>(update__x, xh, pad2)
    taken = Gather(table, neighbours__conv)
    flat = Reshape(taken, patch)
    k3t = Transpose<perm = [2, 3, 1, 0]>(k3)
    k3m = Reshape(k3t, w3)
    a0 = MatMul(flat, k3m)
    a = Add(a0, prepared__e)
    g = Sigmoid(a)
    b = Mul(a, g)
    MEAN_NODES
    update__n = Sub(b, m)
    nh = Gather(cached__n, halo__pool)
    ntable = Concat<axis = 0>(update__n, nh, pad8)
    windows = Gather(ntable, neighbours__pool)
    p = ReduceMean<keepdims = 0>(windows, one)
    k1t = Transpose<perm = [2, 3, 1, 0]>(k1)
    k1m = Reshape(k1t, w1)
    update__q = MatMul(p, k1m)
    qh = Gather(cached__q, halo__up)
    qtable = Concat<axis = 0>(update__q, qh, pad8)
    ups = Gather(qtable, neighbours__up)
    u = Squeeze(ups, one)
    z = Add(update__n, u)
    k2t = Transpose<perm = [2, 3, 1, 0]>(k2)
    k2m = Reshape(k2t, w2)
    update__y = MatMul(z, k2m)
    places = Unsqueeze(rows__fine, one)
    merged = ScatterND(cached__y, places, update__y)
    yr = Reshape(merged, image)
    y = Transpose<perm = [0, 3, 1, 2]>(yr)
}
"""
MEANS = {
    "cached": {"MEAN_INPUTS": "float[8] prepared__m", "MEAN_OUTPUTS": "", "MEAN_NODES": "m = Identity(prepared__m)"},
    "corrected": {
        "MEAN_INPUTS": "float[8] cached__m, float[64,8] cached__b",
        "MEAN_OUTPUTS": ", float[M,8] update__b, float[8] update__m",
        "MEAN_NODES": """update__b = Identity(b)
            old = Gather(cached__b, rows__fine)
            delta = Sub(b, old)
            zero = Constant<value_ints = [0]>()
            sum = ReduceSum<keepdims = 0>(delta, zero)
            shift = Div(sum, rows)
            m = Add(cached__m, shift)
            update__m = Identity(m)""",
    },
}


@dataclass(frozen=True)
class HandBuilt:
    """The bundle, its weights, and its model in plain numpy."""

    bundle: Bundle
    weights: dict[str, Array]

    def feeds(self, seed: int = 0, sigma: float = 0.5) -> dict[str, Array]:
        generator = np.random.default_rng(seed)
        return {
            "x": generator.standard_normal((1, 2, 8, 8), dtype=np.float32),
            "sigma": np.array([sigma], np.float32),
        }

    def states(self, feeds: dict[str, Array]) -> dict[str, Array]:
        """All kept values of a full run, as images with the channels last."""
        everything = {"fine": np.ones((8, 8), bool), "coarse": np.ones((4, 4), bool)}
        return self.masked(feeds, None, everything, "corrected")

    def masked(
        self, feeds: dict[str, Array], kept: dict[str, Array] | None, masks: dict[str, NDArray[np.bool_]], mode: str
    ) -> dict[str, Array]:
        """The masked reference: the full model in which every inactive row keeps its old value."""

        def keep(name: str, new: Array) -> Array:
            mask = masks["coarse" if name == "q" else "fine"][..., None]
            return new if kept is None else np.where(mask, new, kept[name])

        w = self.weights
        x = keep("x", feeds["x"][0].transpose(1, 2, 0))
        padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
        patches = np.stack([padded[i : i + 8, j : j + 8] for i in range(3) for j in range(3)], axis=2)
        a = np.einsum("hwtc,otc->hwo", patches, w["k3"].transpose(0, 2, 3, 1).reshape(8, 9, 2))
        a = a + feeds["sigma"] * w["embed"]
        b = keep("b", a / (1 + np.exp(-a)))
        m = kept["m"] if kept is not None and mode == "cached" else b.mean((0, 1))
        n = keep("n", b - m)
        q = keep("q", n.reshape(4, 2, 4, 2, 8).mean((1, 3)) @ w["k1"][:, :, 0, 0].T)
        z = n + q.repeat(2, 0).repeat(2, 1)
        y = keep("y", z @ w["k2"][:, :, 0, 0].T)
        return {"x": x, "b": b, "m": m, "n": n, "q": q, "y": y}


def _model(text: str, weights: dict[str, Array], offsets: dict[str, int]) -> onnx.ModelProto:
    model = onnx.parser.parse_model(HEADER + text)
    graph = model.graph
    for value in (*graph.input, *graph.output):
        value.name = value.name.replace("__", ".")
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [name.replace("__", ".") for name in names]
    used = {name for node in graph.node for name in node.input}
    for name, array in weights.items():
        if name in used:
            tensor = onnx.TensorProto(name=name, dims=array.shape, data_type=onnx.TensorProto.FLOAT)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            entries = {"location": "weights.bin", "offset": offsets[name], "length": array.nbytes}
            for key, entry in entries.items():
                tensor.external_data.add(key=key, value=str(entry))
            graph.initializer.append(tensor)
    return model


def _edit_spec(mode: str) -> EditGraphSpec:
    corrected = mode == "corrected"
    prepared = TensorSpec("prepared.e", "float32", (8,)), TensorSpec("prepared.m", "float32", (8,))
    return EditGraphSpec(
        file=f"edit_{mode}.onnx",
        prep_file="prep.onnx",
        conditions=("sigma",),
        cached=("x", "n", "q", "y", "m", "b") if corrected else ("x", "n", "q", "y"),
        prep_cached=("m",),
        prepared=prepared,
        grids=("fine", "coarse"),
        neighbourhoods=("conv", "pool", "up"),
        updates=("x", "n", "q", "y", "b", "m") if corrected else ("x", "n", "q", "y"),
    )


def _manifest() -> Manifest:
    def rows(name: str, grid: str, count: int, channels: int) -> CacheableSpec:
        return CacheableSpec(name, name, "rows", grid, 0, "float32", (count, channels), 4 * count * channels)

    def reads(name: str, source: str, target: str, coordinates: list[tuple[int, ...]]) -> NeighbourhoodSpec:
        axis = tuple(coordinates)
        return NeighbourhoodSpec(name, source, target, (axis, axis), None, (1, 1))

    sample = TensorSpec("x", "float32", (1, 2, 8, 8))
    return Manifest(
        producer="written by hand",
        model=ModelSpec("hand-built", "0" * 64, 18, 0),
        editable=EditableSpec("x", (2, 3), "fine"),
        inputs=(sample, TensorSpec("sigma", "float32", (1,))),
        outputs=(OutputSpec(TensorSpec("y", "float32", (1, 2, 8, 8)), "fine", (2, 3)),),
        grids=(GridSpec("fine", (8, 8), "x"), GridSpec("coarse", (4, 4), "x")),
        neighbourhoods=(
            reads(
                "conv", "fine", "fine", [tuple(c if 0 <= c < 8 else -1 for c in (i - 1, i, i + 1)) for i in range(8)]
            ),
            reads("pool", "fine", "coarse", [(2 * i, 2 * i + 1) for i in range(4)]),
            reads("up", "coarse", "fine", [(i // 2,) for i in range(8)]),
        ),
        cacheables=(
            rows("x", "fine", 64, 2),
            rows("b", "fine", 64, 8),
            CacheableSpec("m", "m", "statistic", None, None, "float32", (8,), 32),
            rows("n", "fine", 64, 8),
            rows("q", "coarse", 16, 8),
            rows("y", "fine", 64, 2),
        ),
        edits={mode: _edit_spec(mode) for mode in MEANS},
        plan=(
            PlanRow("conv3", "Conv", "incremental", "fine", 2 * 64 * 18 * 8, 2048),
            PlanRow("conv1", "Conv", "incremental", "coarse", 2 * 16 * 64, 512),
            PlanRow("out", "Conv", "incremental", "fine", 2 * 64 * 16, 512),
            PlanRow("embed", "Mul", "hoisted", None, 8, 32),
        ),
    )


def build(target: Path, seed: int = 3) -> HandBuilt:
    """Writes the bundle with weights drawn from a seed."""
    generator = np.random.default_rng(seed)
    shapes = {"k3": (8, 2, 3, 3), "k1": (8, 8, 1, 1), "k2": (2, 8, 1, 1), "embed": (8,)}
    weights = {name: generator.standard_normal(shape, dtype=np.float32) / 2 for name, shape in shapes.items()}
    offsets = dict(zip(weights, np.cumsum([0, *(array.nbytes for array in weights.values())]).tolist(), strict=False))
    graphs = {"base.onnx": BASE, "prep.onnx": PREP}
    for mode, parts in MEANS.items():
        text = EDIT
        for place, part in parts.items():
            text = text.replace(place, part)
        graphs[f"edit_{mode}.onnx"] = text
    with BundleWriter(target) as writer:
        (writer.path / "weights.bin").write_bytes(b"".join(array.tobytes() for array in weights.values()))
        for file, text in graphs.items():
            onnx.save(_model(text, weights, offsets), writer.path / file)
        writer.finish(_manifest())
    return HandBuilt(Bundle.open(target), weights)


@pytest.fixture(scope="session")
def hand_built(tmp_path_factory: pytest.TempPathFactory) -> HandBuilt:
    return build(tmp_path_factory.mktemp("hand_built") / "bundle")


@pytest.fixture
def otherwise_weighted(tmp_path: Path) -> HandBuilt:
    """A bundle of the same model with other weights."""
    return build(tmp_path / "otherwise_weighted", seed=4)
