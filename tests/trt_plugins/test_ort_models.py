"""Models that ONNX Runtime optimised ahead of time: sessions on them give what sessions on the graphs give."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from typer.testing import CliRunner

from retouch import EditSession, Region
from retouch.bundle import Bundle, ProfileSpec
from retouch.cli import app
from retouch.engines import Target
from retouch.engines.ort import OrtEngine
from retouch.errors import BuildError, BuildRequestError, EngineError, EngineMissingError, RetouchError
from retouch.export import ExportOptions, export_onnx
from retouch.session import EditRequest
from retouch.trt_plugins import BuildOptions, Precision, build, outdated
from retouch.trt_plugins._compile import Work
from retouch.trt_plugins._graphs import LoadedGraph
from retouch.trt_plugins._ort_models import profile_options

CPU = ("CPUExecutionProvider",)
OWN = OrtEngine().providers
ORT = BuildOptions(Target.ORT, devices=CPU)
SMALL = Region.from_boxes([(3, 3, 6, 6)], shape=(16, 16), policy="exact")
X = np.random.default_rng(0).standard_normal((1, 4, 16, 16)).astype(np.float32)
FEEDS = {"x": X, "step": np.full(1, 0.5, np.float32)}


def results(bundle: Bundle, engine: str, providers: tuple[str, ...]) -> list[bytes]:
    """A base run, an edit, one of what it commits, and two together."""
    dtype = bundle.manifest.inputs[0].dtype
    feeds = {name: array.astype(dtype) for name, array in FEEDS.items()}
    with EditSession(bundle.path, providers, threads=1, engine=engine) as session:
        run = session.base(feeds)
        edit = session.edit(run, {"x": feeds["x"] + 1}, region=SMALL, record=True)
        later = session.edit(edit.commit(), {"step": feeds["step"] * 2}, region=SMALL)
        requests = [EditRequest(SMALL, {"x": feeds["x"] * factor}) for factor in (2, 3)]
        both = session.edit_many(run, requests) if engine == "onnxruntime" or _has_stack(bundle) else []
        outputs = [run.outputs, edit.outputs, later.outputs, *(result.outputs for result in both)]
        return [output["y"].tobytes() for output in outputs]


def _has_stack(bundle: Bundle) -> bool:
    return any("stacked" in spec.graph for spec in Bundle.open(bundle.path).manifest.engines.values())


@pytest.mark.parametrize("providers", sorted({CPU, OWN}))
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_sessions_give_bit_for_bit_what_they_give_without_a_build(
    model: Path, tmp_path: Path, providers: tuple[str, ...], precision: str
) -> None:
    options = ExportOptions(editable="x", min_coverage=0.0, precision=precision, verify=False)
    bundle = export_onnx(model, tmp_path / "b", options)
    made = build(bundle, BuildOptions(Target.ORT, devices=providers, stacked=True))
    assert {engine.spec.precision for engine in made} == {precision}
    assert results(bundle, "ort", providers) == results(bundle, "onnxruntime", providers)


def test_models_are_optimised_and_weights_stay_where_they_are(bundle: Bundle) -> None:
    made = build(bundle, ORT)
    assert [engine.spec.graph for engine in made] == ["base.onnx", "prep.onnx", "edit.onnx"]
    for engine in made:
        spec = engine.spec
        assert (spec.version, spec.devices, spec.profiles) == (onnxruntime.__version__, CPU, ())
        built = onnx.load(bundle.path / engine.name, load_external_data=False)
        assert len(built.graph.node) == engine.layers and not built.functions
    edit = onnx.load(bundle.path / made[2].name, load_external_data=False)
    assert "FusedGemm" in {node.op_type for node in edit.graph.node}
    # Of the base graph's weights none changes its layout.
    stored, built = (
        {tensor.name: tensor for tensor in onnx.load(path, load_external_data=False).graph.initializer}
        for path in (bundle.path / "base.onnx", bundle.path / made[0].name)
    )
    outside = {name for name, tensor in stored.items() if tensor.external_data}
    assert outside
    for name in outside:
        places = [[(entry.key, entry.value) for entry in one[name].external_data] for one in (stored, built)]
        assert {*places[1]} <= {*places[0]} and ("location", "weights.bin") in places[1]


def test_only_what_changed_is_built_again_and_other_providers_are_beside(bundle: Bundle) -> None:
    first = build(bundle, ORT)
    other = BuildOptions(Target.ORT, devices=("RetouchExecutionProvider",) if OWN != CPU else CPU)
    assert len(outdated(Bundle.open(bundle.path), other)) == (3 if OWN != CPU else 0)
    build(bundle.path, other)
    assert [engine.kept for engine in build(bundle.path, ORT)] == [True] * 3
    names = {engine.name for engine in first}
    assert names <= set(Bundle.open(bundle.path).manifest.engines)
    assert all((bundle.path / name).is_file() for name in names)


def test_sessions_find_weights_of_a_shared_file(sharing: Bundle) -> None:
    build(sharing, ORT)
    feeds = {"x": np.concatenate([X, X], axis=2), "step": FEEDS["step"]}
    runs = []
    for engine in ("ort", "onnxruntime"):
        with EditSession(sharing.path, CPU, threads=1, engine=engine) as session:
            runs.append(session.base(feeds).outputs["y"])
    assert np.array_equal(*runs)


def test_models_that_do_not_fit(bundle: Bundle) -> None:
    missing = pytest.raises(EngineMissingError, match="--engine ort --device CPUExecutionProvider`")
    with EditSession(bundle, CPU, engine="ort") as session, missing:
        session.base(FEEDS)
    build(bundle, ORT)
    built = Bundle.open(bundle.path)
    old = {name: dataclasses.replace(spec, version="1.0.0") for name, spec in built.manifest.engines.items()}
    aged = Bundle(built.path, built.manifest.replace(engines=old))
    with (
        EditSession(aged, CPU, engine="ort") as session,
        pytest.raises(EngineError, match="got one of 1.0.0.*Build it"),
    ):
        session.base(FEEDS)
    with EditSession(built, engine="ort") as session:  # the providers that models were built for
        assert session.base(FEEDS).outputs["y"].shape == X.shape
        assert session._opened().engine.name == "onnxruntime.cpu"
    name = next(iter(built.manifest.engines))
    (bundle.path / name).write_bytes(b"cut short")
    with EditSession(built, CPU, engine="ort") as session, pytest.raises(RetouchError, match="build it again"):
        session.base(FEEDS)


def test_builds_that_cannot_be(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineMissingError, match=r"TensorrtExecutionProvider .*libnvinfer\.so\.10"):
        build(bundle, BuildOptions(Target.ORT, devices=("TensorrtExecutionProvider",)))
    with pytest.raises(BuildRequestError, match="that run operators themselves for plugins, got TensorrtExecution"):
        build(bundle, BuildOptions(Target.ORT, devices=("TensorrtExecutionProvider",), plugins=True))
    with pytest.raises(BuildRequestError, match="without weights are a feature of tensorrt and tensorrt-rtx; ort has"):
        BuildOptions(Target.ORT, refit=True)
    with pytest.raises(BuildRequestError, match="TF32 is a precision of tensorrt and tensorrt-rtx; ort has none"):
        BuildOptions(Target.ORT, Precision.TF32)
    monkeypatch.setattr("retouch.engines.ort._compile.COMPILING", CPU)  # a provider that compiles nothing
    with pytest.raises(BuildError, match="does not compile base.onnx: .*Unable to compile any nodes"):
        build(bundle, ORT)
    monkeypatch.delattr(onnxruntime, "ModelCompiler")
    with pytest.raises(EngineMissingError, match="that compiles models ahead of time"):
        build(bundle, ORT)


def test_profiles_become_options_of_providers_that_compile() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 18]> g (int64[M,9] n, float[4] c) => (int64[M,9] y) { y = Identity(n) }'
    )
    profiles = (ProfileSpec(10, {"M": (1, 8, 10)}), ProfileSpec(64, {"M": (1, 60, 64)}))
    work = Work("edit.onnx", LoadedGraph(model, Path(), "", ""), profiles, Precision.FLOAT32)
    assert profile_options("TensorrtExecutionProvider", work) == {
        "trt_profile_min_shapes": "n:1x9,n:1x9",
        "trt_profile_opt_shapes": "n:8x9,n:60x9",
        "trt_profile_max_shapes": "n:10x9,n:64x9",
    }
    assert next(iter(profile_options("NvTensorRTRTXExecutionProvider", work))) == "nv_profile_min_shapes"
    assert profile_options("CUDAExecutionProvider", work) == {}
    assert profile_options("TensorrtExecutionProvider", dataclasses.replace(work, profiles=())) == {}


def test_the_command(bundle: Bundle) -> None:
    command = ["build", str(bundle.path), "--engine", "ort", "--device", CPU[0], "--json", "-"]
    said = CliRunner().invoke(app, command)
    assert said.exit_code == 0, said.output
    assert [engine["target"] for engine in json.loads(said.stdout)["engines"]] == ["ort"] * 3
    again = CliRunner().invoke(app, [*command, "--check"])
    assert again.exit_code == 0 and json.loads(again.stdout)["outdated"] == []
