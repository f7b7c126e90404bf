"""The kernels as operators of ONNX Runtime, in sessions of ONNX Runtime: compiled for the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from retouch import EditSession, Region
from retouch.bundle import Bundle
from retouch.engines import Target
from retouch.errors import EngineMissingError
from retouch.export import ExportOptions, export_onnx
from retouch.trt_plugins import BuildOptions, build
from retouch.validation.reference_models import export_reference
from tests.trt_plugins.host_ort_ops import compile_ort_ops

CPU = ("CPUExecutionProvider",)
PLUGINS = BuildOptions(Target.ORT, devices=CPU, plugins=True)
TOLERANCE = {"float32": 2e-5, "float16": 2e-2}


@pytest.fixture(scope="module")
def library(host_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_ort_ops(tmp_path_factory.mktemp("ort_ops"), host_library)


@pytest.fixture(autouse=True)
def named(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETOUCH_ORT_OPS", str(library))


def feeds_of(bundle: Bundle) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {
        spec.name: generator.standard_normal(spec.shape).astype(spec.dtype)
        if spec.dtype.startswith("float")
        else np.ones(spec.shape, spec.dtype)
        for spec in bundle.manifest.inputs
    }


def edited(bundle: Bundle, engine: str, mode: str) -> list[np.ndarray]:
    feeds, editable = feeds_of(bundle), bundle.manifest.editable
    dims = bundle.manifest.grid(editable.grid).dims
    region = Region.from_boxes([(*(size // 4 for size in dims), *(size // 4 + 3 for size in dims))], shape=dims)
    with EditSession(bundle.path, CPU, threads=1, group_norm=mode, engine=engine) as session:
        run = session.base(feeds)
        changed = {editable.input: feeds[editable.input] + np.asarray(1, feeds[editable.input].dtype)}
        edit = session.edit(run, changed, region=region, fallback=False, record=True)
        states = edit.commit().states
    return [next(iter(edit.outputs.values())), *(states[name].numpy() for name in sorted(states))]


@pytest.mark.parametrize(
    ("name", "mode", "precision", "operators"),
    [
        ("ddpm_unet_tiny", "cached", "float32", {"EditConv", "RowLinear", "EditAttention"}),
        ("ddpm_unet_tiny", "corrected", "float32", {"EditConv", "RowLinear", "EditAttention", "EditGroupNorm"}),
        ("dit_tiny", "cached", "float32", {"RowLinear", "EditAttention"}),
        ("dit_tiny", "cached", "float16", {"RowLinear", "EditAttention"}),
    ],
)
def test_sessions_on_the_kernels_give_what_function_bodies_give(
    name: str, mode: str, precision: str, operators: set[str], reference_models: Path, tmp_path: Path
) -> None:
    options = ExportOptions(verify=False, precision=precision)
    bundle = export_onnx(export_reference(name, reference_models), tmp_path / "bundle", options)
    made = build(bundle, BuildOptions(Target.ORT, devices=CPU, plugins=True, group_norm=(mode,)))
    built = onnx.load(bundle.path / made[-1].name, load_external_data=False)
    ours = Counter(node.op_type for node in built.graph.node if node.domain == "ai.retouch")
    assert operators <= set(ours)
    for got, expected in zip(edited(bundle, "ort", mode), edited(bundle, "onnxruntime", mode), strict=True):
        assert got.shape == expected.shape and got.dtype == expected.dtype
        error = np.abs(got.astype(np.float64) - expected.astype(np.float64)).max()
        assert error <= TOLERANCE[precision] * np.abs(expected.astype(np.float64)).max()


def test_gathered_rows_and_operands_that_are_left_out(bundle: Bundle) -> None:
    """The small UNet gathers rows for a stride, has no norms, and one product without a bias."""
    made = build(bundle, PLUGINS)
    built = onnx.load(bundle.path / made[-1].name, load_external_data=False)
    assert {"GatherRows", "EditConv"} <= {node.op_type for node in built.graph.node if node.domain == "ai.retouch"}
    got, expected = edited(bundle, "ort", "cached"), edited(bundle, "onnxruntime", "cached")
    assert all(np.allclose(one, other, rtol=0, atol=1e-5) for one, other in zip(got, expected, strict=True))


def session_of(text: str, library: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(str(library))
    return onnxruntime.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), options, providers=CPU)


def test_failures_are_errors_of_onnx_runtime(library: Path) -> None:
    head = '<ir_version: 10, opset_import: ["" : 18, "ai.retouch" : 1]>'
    wide = f"""{head} g (float[1,600] q, float[1,600] k, float[2,1,600] c, int64[1,1] i) => (float[m,n] y) {{
        y = ai.retouch.EditAttention<scale = 1.0>(q, k, k, c, c, i) }}"""
    feeds: Mapping[str, np.ndarray] = {
        "q": np.ones((1, 600), np.float32), "k": np.ones((1, 600), np.float32),
        "c": np.ones((2, 1, 600), np.float32), "i": np.zeros((1, 1), np.int64),
    }  # fmt: skip
    with pytest.raises(Exception, match="EditAttention failed with error -1"):
        session_of(wide, library).run(None, feeds)
    with pytest.raises(Exception, match="scale"):
        session_of(wide.replace("<scale = 1.0>", ""), library)


def test_a_library_that_is_not_there_or_another(
    bundle: Bundle, host_library: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(bundle, PLUGINS)
    monkeypatch.delenv("RETOUCH_ORT_OPS")
    unnamed = pytest.raises(EngineMissingError, match="RETOUCH_ORT_OPS to name .*got nothing.*make ort-ops")
    with EditSession(bundle.path, engine="ort") as session, unnamed:
        session.base(feeds_of(bundle))
    with (
        monkeypatch.context() as patch,
        pytest.raises(EngineMissingError, match="operators of interface 99, got 3.*make ort-ops"),
    ):
        patch.setenv("RETOUCH_ORT_OPS", str(library))
        patch.setattr("retouch.engines.ort._custom_ops._INTERFACE", 99)
        build(bundle, BuildOptions(Target.ORT, devices=CPU, plugins=True, rows=("all",), stacked=True))
    monkeypatch.setenv("RETOUCH_ORT_OPS", str(host_library))
    with pytest.raises(EngineMissingError, match="operators for ONNX Runtime, got: .*retouch_ort_describe"):
        build(bundle, BuildOptions(Target.ORT, devices=CPU, plugins=True, rows=("all",), stacked=True))
