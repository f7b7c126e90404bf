"""Edits of models whose rows depend on sums over all rows: channel gates, linear attention."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from retouch import EditRequest, EditSession, Region
from retouch.bundle import Bundle
from retouch.calibrate import sample_feeds
from retouch.export import ExportOptions, export_onnx

HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
GATED = """
gated (float[1,4,8,8] x) => (float[1,4,8,8] y, float[1,4] mean) {
    a = Conv<pads = [1, 1, 1, 1]>(x, inner)
    pooled = GlobalAveragePool(a)
    squeezed = Conv(pooled, squeeze)
    gate = Sigmoid(squeezed)
    b = Mul(a, gate)
    peak = GlobalMaxPool(b)
    c = Add(b, peak)
    y = Conv<pads = [1, 1, 1, 1]>(c, outer)
    kept = GlobalAveragePool(y)
    mean = Flatten(kept)
}
"""
LINEAR = """
linear (float[1,16,8] x) => (float[1,16,8] y) <int64[1] tokens = {1}, float small = {0.001}> {
    q0 = MatMul(x, wq)
    q = Relu(q0)
    k0 = MatMul(x, wk)
    k = Relu(k0)
    v = MatMul(x, wv)
    kt = Transpose<perm = [0, 2, 1]>(k)
    kv = MatMul(kt, v)
    sums = ReduceSum(k, tokens)
    st = Transpose<perm = [0, 2, 1]>(sums)
    top = MatMul(q, kv)
    below = MatMul(q, st)
    guarded = Add(below, small)
    mixed = Div(top, guarded)
    y = MatMul(mixed, wo)
}
"""
WEIGHTS = {
    "gated": {"inner": (4, 4, 3, 3), "squeeze": (4, 4, 1, 1), "outer": (4, 4, 3, 3)},
    "linear": dict.fromkeys(("wq", "wk", "wv", "wo"), (8, 8)),
}
TEXTS = {"gated": GATED, "linear": LINEAR}
SCALE = 2e-5


@pytest.fixture(scope="module", params=WEIGHTS)
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp(request.param)
    model = onnx.parser.parse_model(HEADER + TEXTS[request.param])
    generator = np.random.default_rng(2)
    for name, shape in WEIGHTS[request.param].items():
        weight = 0.4 * generator.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    onnx.save(model, folder / "model.onnx")
    axes = (2, 3) if request.param == "gated" else (1,)
    return export_onnx(folder / "model.onnx", folder / "bundle", ExportOptions(editable="x", axes=axes))


@pytest.fixture
def session(bundle: Bundle):
    with EditSession(bundle, threads=1, group_norm="corrected") as session:
        yield session


def dims_of(bundle: Bundle) -> tuple[int, ...]:
    return bundle.manifest.grid(bundle.manifest.editable.grid).dims


def corner(bundle: Bundle) -> Region:
    """Two positions along every axis."""
    dims = dims_of(bundle)
    return Region.from_boxes([(*[2] * len(dims), *[4] * len(dims))], dims, "exact")


def assert_close(got: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(got - expected).max() <= SCALE * np.abs(expected).max()


def by_row(bundle: Bundle, y: np.ndarray) -> np.ndarray:
    """[rows..., channels]."""
    axes = bundle.manifest.editable.axes
    return np.moveaxis(y[0], [axis - 1 for axis in axes], range(len(axes)))


def test_rows_outside_are_the_base_runs(session: EditSession, bundle: Bundle) -> None:
    run, feeds = session.base(sample_feeds(bundle.manifest)), sample_feeds(bundle.manifest, seed=1)
    region = corner(bundle)
    result = session.edit(run, feeds, region=region, fallback=False)
    before, after = (by_row(bundle, outputs["y"]) for outputs in (run.outputs, result.outputs))
    manifest = bundle.manifest
    grid = next(output.grid for output in manifest.outputs if output.tensor.name == "y")
    active = region.active(manifest.grids, manifest.grid(manifest.editable.grid)).mask(str(grid))
    assert result.report.path == "edit"
    assert (before[~active] == after[~active]).all()
    assert (before[active] != after[active]).any(axis=-1).all()


def test_an_edit_of_everything_is_a_full_run_however_many_came_before(session: EditSession, bundle: Bundle) -> None:
    run = session.base(sample_feeds(bundle.manifest))
    for seed in range(1, 7):
        feeds = sample_feeds(bundle.manifest, seed=seed)
        region = Region.full(dims_of(bundle)) if seed % 2 == 0 else corner(bundle)
        result = session.edit(run, feeds, region=region, fallback=False, record=True)
        if seed % 2 == 0:
            for name, expected in session.base(feeds, record=False).outputs.items():
                assert_close(result.outputs[name], expected)
        run = result.commit()


def test_several_edits_say_whether_they_shared_a_run(session: EditSession, bundle: Bundle) -> None:
    run = session.base(sample_feeds(bundle.manifest))
    requests = [EditRequest(corner(bundle), sample_feeds(bundle.manifest, seed=seed)) for seed in (1, 2)]
    results = session.edit_many(run, requests, group_norm="cached", fallback=False)
    for request, result in zip(requests, results, strict=True):
        alone = session.edit(run, request.feeds, region=request.region, group_norm="cached", fallback=False)
        assert_close(result.outputs["y"], alone.outputs["y"])
        assert result.report.stacked == 1
        assert "sums over the rows, once for every edit" in result.report.reason


@pytest.mark.parametrize("bundle", ["gated"], indirect=True)
def test_a_held_gate_stays_and_a_pooled_output_follows(bundle: Bundle, session: EditSession) -> None:
    run, feeds = session.base(sample_feeds(bundle.manifest)), sample_feeds(bundle.manifest, seed=1)
    everywhere = Region.full(dims_of(bundle))
    cached, corrected = (
        session.edit(run, feeds, region=everywhere, group_norm=mode, fallback=False) for mode in ("cached", "corrected")
    )
    full = session.base(feeds, record=False)
    assert np.abs(cached.outputs["y"] - full.outputs["y"]).max() > 1e-3
    assert_close(cached.outputs["mean"], cached.outputs["y"].mean(axis=(2, 3)))
    assert_close(corrected.outputs["y"], full.outputs["y"])
