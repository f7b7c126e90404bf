"""Engines and machines that do not fit, and what sessions say of them."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tensorrt_rtx

from retouch import EditSession
from retouch.bundle import Bundle, EngineSpec, FileSpec, update_manifest
from retouch.engines import Target, load_library
from retouch.engines.tensorrt import Messages, TensorRtEngine, logger
from retouch.engines.tensorrt._loaded import deserialise
from retouch.errors import EngineError, EngineMissingError, NonFiniteError, RetouchError
from retouch.export import ExportOptions, export_onnx
from retouch.session import EditRequest
from retouch.session._prepared import prepare
from retouch.session._resolve import resolved
from retouch.session._states_read import cached_inputs
from retouch.trt_plugins import BuildOptions, build
from retouch.trt_plugins._engine_timings import time_engines
from retouch.trt_plugins.gpu_check import GpuReport, page
from tests.trt_plugins import fake_runtime
from tests.trt_plugins.fake_cuda import FakeCuda
from tests.trt_plugins.runner.cases import ENGINE, FEEDS, OTHER, SMALL, STEP, X, installed


def test_outputs_that_are_not_finite_are_named(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        with pytest.raises(NonFiniteError, match="output 'y'.*NaN"):
            session.edit(run, {"x": np.full_like(X, np.nan)}, region=SMALL)


def test_engines_that_do_not_fit(built: Bundle, card: FakeCuda, tmp_path: Path) -> None:
    def changed(change: Callable[[Any], Any]) -> Bundle:
        engines = {name: change(spec) for name, spec in built.manifest.engines.items()}
        return Bundle(built.path, built.manifest.replace(engines=engines))

    for bundle, message in (
        (changed(lambda spec: dataclasses.replace(spec, version="1.0.0")), "which is installed, got one of 1.0.0"),
        (changed(lambda spec: dataclasses.replace(spec, devices=("12.0",))), r"Fake 4090 \(compute capability 8.9\)"),
        (changed(lambda spec: dataclasses.replace(spec, traits=("plugins",))), "takes no plugins"),
    ):
        with EditSession(bundle, engine=ENGINE) as session, pytest.raises(RetouchError, match=message):
            session.base(FEEDS)
    none = Bundle(built.path, built.manifest.replace(engines={}))
    with (
        EditSession(none, engine=ENGINE) as session,
        pytest.raises(EngineMissingError, match="got engines of no graph"),
    ):
        session.base(FEEDS)


def test_of_engines_for_several_cards_the_right_one_runs(built: Bundle, card: FakeCuda) -> None:
    """The one for another card was built last."""
    engines = {}
    for name, spec in built.manifest.engines.items():
        engines[name] = dataclasses.replace(spec, devices=("8.9",))
    engines |= {
        name.replace(".engine", "0.engine"): dataclasses.replace(spec, devices=("12.0",))
        for name, spec in engines.items()
    }
    with EditSession(Bundle(built.path, built.manifest.replace(engines=engines)), engine=ENGINE) as session:
        run = session.base(FEEDS)
        assert session.edit(run, {"x": OTHER}, region=SMALL).report.path == "edit"
        assert {*session._opened().engine._slots} <= {*built.manifest.engines}


def test_engines_of_older_versions_run_where_they_were_built_for_it(built: Bundle, card: FakeCuda) -> None:
    def of(version: str) -> Bundle:
        engines = {
            name: dataclasses.replace(spec, version=version, traits=("version-compatible",))
            for name, spec in built.manifest.engines.items()
        }
        return Bundle(built.path, built.manifest.replace(engines=engines))

    with EditSession(of("1.0.0"), engine=ENGINE) as session:
        session.base(FEEDS)
        assert session._opened().engine._runtime.engine_host_code_allowed
    with EditSession(of("2.0.0"), engine=ENGINE) as session, pytest.raises(EngineError, match="got one of 2.0.0"):
        session.base(FEEDS)
    with EditSession(built, engine=ENGINE) as session:
        session.base(FEEDS)
        assert not session._opened().engine._runtime.engine_host_code_allowed


def test_engines_without_weights_take_those_of_their_bundle(built: Bundle, card: FakeCuda) -> None:
    engines = {
        name: dataclasses.replace(spec, traits=("refit", "stripped")) for name, spec in built.manifest.engines.items()
    }
    bare = Bundle(built.path, built.manifest.replace(engines=engines))
    module = sys.modules["tensorrt_rtx"]
    with EditSession(bare, engine=ENGINE) as session:
        session.base(FEEDS)
        graph = onnx.load(built.path / "base.onnx", load_external_data=False).graph
        stored = {tensor.name for tensor in graph.initializer if tensor.external_data}
        assert stored == set(module.refitted) != set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake_runtime.ParserRefitter, "refit_from_bytes", lambda *_: True)
        with (
            EditSession(bare, engine=ENGINE) as session,
            pytest.raises(EngineError, match="finds no .* for the engine"),
        ):
            session.base(FEEDS)


def test_a_damaged_engine_and_one_that_does_not_load(model: Path, card: FakeCuda, tmp_path: Path) -> None:
    bundle = export_onnx(model, tmp_path / "b", ExportOptions(editable="x", min_coverage=0.0, verify=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retouch.trt_plugins._build.compile_graph", fake_runtime.compiled)
        made = build(bundle, BuildOptions(Target.TENSORRT_RTX, rows=("all",)))
    (bundle.path / made[0].name).write_bytes(b"cut short")
    with EditSession(bundle.path, engine=ENGINE) as session, pytest.raises(RetouchError, match="build it again"):
        session.base(FEEDS)


def test_the_library_says_why_it_does_not_load_an_engine() -> None:
    """The library itself, with an engine of its own, on a machine without a driver."""
    library, messages = load_library(Target.TENSORRT_RTX), Messages()
    log = logger(library.trt, messages)
    builder = tensorrt_rtx.Builder(log)
    network = builder.create_network(0)
    result = network.add_unary(network.add_input("x", tensorrt_rtx.float32, (4,)), tensorrt_rtx.UnaryOperation.EXP)
    network.mark_output(result.get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    spec = EngineSpec("edit.onnx", ENGINE, library.version, "float32", (), (), (), (), "", FileSpec(0, ""))
    with pytest.raises(EngineError, match="does not load the engine of edit.onnx: .*(driver|CUDA).*retouch build"):
        deserialise(library, tensorrt_rtx.Runtime(log), spec, bytes(plan), messages)


def test_options_and_machines_that_do_not_fit(built: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RetouchError, match="one of 'onnxruntime', 'tensorrt-rtx', 'tensorrt', 'ort', got 'trt'"):
        EditSession(built, engine="trt")
    with pytest.raises(RetouchError, match="no providers and no threads"):
        EditSession(built, threads=1, engine=ENGINE)
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", None)
    with pytest.raises(EngineMissingError, match="cuda-bindings"):
        EditSession(built, engine=ENGINE).open()
    card = installed(monkeypatch, FakeCuda())
    monkeypatch.setattr(card, "cudaGetDeviceCount", lambda: (35, None))
    with pytest.raises(EngineMissingError, match=r"GPU with its driver .*got: error 35.*ONNX Runtime runs bundles"):
        EditSession(built, engine=ENGINE).open()


def test_an_aliased_output_takes_over_a_copy_of_its_input(
    built: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where an engine updates an input in place, values stay what they are."""
    spec = next(spec for spec in built.manifest.engines.values() if spec.graph == "edit.onnx")
    card = installed(monkeypatch, FakeCuda(), {"y": "x"})
    engine = TensorRtEngine(built, Target.TENSORRT_RTX)
    program = engine.open(built.path / spec.graph, ("y",))
    assert program.outputs == ("y",)
    with EditSession(built, ["CPUExecutionProvider"], threads=1, group_norm="cached") as session:
        run = session.base(FEEDS)
        runtime = session._opened()
        edit = resolved(runtime, run.id, EditRequest(SMALL, {"x": OTHER}), "cached")
        graph = built.manifest.edits["cached"]
        inputs = runtime.regions.inputs(edit.region, "cached", graph)
        expected = session.edit(run, {"x": OTHER}, region=SMALL, fallback=False)
        prepared = prepare(runtime, run.id, edit.feeds, graph, run.states).values
        values = {
            name: engine.value(value.numpy())
            for name, value in {**inputs, **prepared, **cached_inputs(graph, run.states)}.items()
        }
    binding = program.bind(values)
    fed = engine.value(OTHER)
    for _ in range(3):
        got = binding.run({"x": fed, "step": engine.value(STEP)})["y"].numpy()
        assert got.tobytes() == expected.outputs["y"].tobytes()
        assert fed.numpy().tobytes() == OTHER.tobytes()
    assert card.names().count("cudaGraphLaunch") == 2


def test_engines_are_timed_without_sessions(built: Bundle, card: FakeCuda) -> None:
    small, large = time_engines(built.path, Target.TENSORRT_RTX, (0.02, 0.2, 1.0))
    assert (small.engine, small.rows, large.rows) == (ENGINE, 4, 49)
    assert small.speedup > 0 and large.base_milliseconds > 0
    assert small.notes == ("profile 1 of 2, made for 16 rows", "launched as a captured graph")
    report = GpuReport("host", (), (), engines=(small, large))
    assert "| tensorrt-rtx | 49 (20%) |" in page(report)


def test_manifests_of_before_are_read(built: Bundle, tmp_path: Path) -> None:
    """Version 4 knew no traits of engines, one stacked graph, and no states of an edit's own."""
    copy = tmp_path / "copy"
    shutil.copytree(built.path, copy)
    data = json.loads((copy / "manifest.json").read_text())
    data["schema_version"] = 4
    for spec in data["engines"].values():
        del spec["traits"]
    data["stacked"] = data["stacked"]["cached"]
    for spec in (*data["edits"].values(), data["stacked"]["graph"]):
        del spec["owners"]
    (copy / "manifest.json").write_text(json.dumps(data))
    assert Bundle.open(copy).manifest == built.manifest
    update_manifest(copy, built.manifest)
