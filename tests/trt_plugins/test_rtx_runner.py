"""Sessions on engines, against sessions on ONNX Runtime: CUDA's calls and TensorRT's runtime are played on the host."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tensorrt_rtx
import torch

from retouch import EditSession, Region
from retouch.bundle import Bundle, EngineSpec, FileSpec, update_manifest
from retouch.calibrate import calibrate
from retouch.engines.ort import OrtEngine
from retouch.engines.tensorrt import Messages, Target, TensorRtEngine, load_library, logger
from retouch.engines.tensorrt._loaded import deserialise
from retouch.errors import EngineError, EngineMissingError, FeedError, NonFiniteError, RetouchError
from retouch.export import ExportOptions, export_onnx
from retouch.session import EditRequest
from retouch.session._prepared import prepare
from retouch.session._states_read import cached_inputs
from retouch.trt_plugins import BuildOptions, build
from retouch.trt_plugins._engine_timings import time_engines
from retouch.trt_plugins.gpu_check import GpuReport, page
from tests.trt_plugins import fake_runtime
from tests.trt_plugins.fake_cuda import FakeCuda, driver

ENGINE = "tensorrt-rtx"
SMALL = Region.from_boxes([(3, 3, 6, 6)], shape=(16, 16), policy="exact")
MEDIUM = Region.from_boxes([(3, 3, 11, 11)], shape=(16, 16), policy="exact")
LARGE = Region.from_boxes([(0, 0, 12, 12)], shape=(16, 16), policy="exact")
GENERATOR = np.random.default_rng(3)
X = GENERATOR.standard_normal((1, 4, 16, 16), dtype=np.float32)
OTHER = X + GENERATOR.standard_normal(X.shape, dtype=np.float32)
STEP = np.full(1, 0.5, np.float32)
FEEDS = {"x": X, "step": STEP}


@pytest.fixture(scope="module")
def built(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    """The small UNet with engines for 16 rows and for all 256."""
    options = ExportOptions(editable="x", min_coverage=0.0, verify=False)
    bundle = export_onnx(model, tmp_path_factory.mktemp("runner") / "bundle", options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retouch.trt_plugins._build.compile_graph", fake_runtime.compiled)
        build(bundle, BuildOptions(Target.TENSORRT_RTX, rows=("16", "100")))
        yield Bundle.open(bundle.path)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    return installed(monkeypatch, FakeCuda())


def installed(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda, aliases: dict[str, str] | None = None) -> FakeCuda:
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", cuda)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver())
    monkeypatch.setitem(sys.modules, "tensorrt_rtx", fake_runtime.library(cuda, aliases))
    monkeypatch.setattr("retouch.engines.tensorrt._cuda.Cuda.memory_kind", 1)  # its memory is the host's
    return cuda


@pytest.fixture(scope="module")
def stock(built: Bundle) -> Iterator[EditSession]:
    with EditSession(built, ["CPUExecutionProvider"], threads=1) as session:
        yield session


def test_runs_edits_and_commits_are_those_of_onnx_runtime(built: Bundle, stock: EditSession, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        for record in (False, True):
            results = []
            for one in (session, stock):
                run = one.base(FEEDS)
                edit = one.edit(run, {"x": OTHER}, region=SMALL, record=record)
                following = one.edit(edit.commit(), {"step": STEP * 2}, region=MEDIUM)
                results.append((run, edit, following))
            ours, theirs = results
            for got, expected in zip(ours, theirs, strict=True):
                assert got.outputs["y"].tobytes() == expected.outputs["y"].tobytes()
            assert {n: v.numpy().tobytes() for n, v in ours[0].states.items()} == {
                n: v.numpy().tobytes() for n, v in theirs[0].states.items()
            }
        report = ours[1].report
        assert (report.path, report.engine, report.threads) == ("edit", ENGINE, 1)
        assert report.active_rows == theirs[1].report.active_rows
        assert "profile 1 of 2, made for 16 rows" in report.notes
        assert "made for 16 rows" in str(report)
    assert "cudaMemPoolSetAttribute" in card.names()


def test_states_stay_on_the_card(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        session.edit(run, {"x": OTHER}, region=SMALL)
        card.calls.clear()
        session.edit(run, {"x": OTHER * 2}, region=SMALL)
        copied = [call for call in card.calls if call[0] == "cudaMemcpyAsync"]
        assert {call[1]: sum(c[2] for c in copied if c[1] == call[1]) for call in copied} == {
            "HostToDevice": X.nbytes,
            "DeviceToDevice": X.nbytes,
            "DeviceToHost": X.nbytes,
        }
        assert run.bytes > X.nbytes


def test_an_edit_that_comes_again_is_captured_once_and_launched(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        wanted = ["execute_async_v3", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphLaunch"]
        seen, notes = [], []
        for factor in range(4):
            card.calls.clear()
            notes.append(session.edit(run, {"x": OTHER * factor}, region=SMALL).report.notes)
            seen.append([name for name in card.names() if name in wanted])
        assert seen[0][-1] == "execute_async_v3"
        assert seen[1] == ["cudaStreamBeginCapture", "execute_async_v3", "cudaStreamEndCapture", "cudaGraphLaunch"]
        assert seen[2] == seen[3] == ["cudaGraphLaunch"]
        (launched,) = {call[-1] for call in card.calls if call[0] == "cudaGraphLaunch"}
        assert next(call for call in card.calls if call[0] == "cudaStreamSynchronize") == (
            "cudaStreamSynchronize",
            launched,
        )
        assert ["launched as a captured graph" in note for note in notes] == [False, True, True, True]


def test_captured_edits_give_what_others_give(built: Bundle, stock: EditSession, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        ours, theirs = session.base(FEEDS), stock.base(FEEDS)
        kept = []
        for number in range(6):  # two regions in turn, which share a profile and its memory
            region = SMALL if number % 2 else Region.from_boxes([(9, 9, 11, 12)], shape=(16, 16), policy="exact")
            feed = {"x": OTHER * (number + 1)}
            kept.append(
                (session.edit(ours, feed, region=region), stock.edit(theirs, feed, region=region, fallback=False))
            )
        assert kept[-1][0].report.notes[-1] == "launched as a captured graph"
        for got, expected in kept:
            assert got.outputs["y"].tobytes() == expected.outputs["y"].tobytes()


def test_a_region_takes_the_next_profile_or_a_full_run(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        assert "profile 2 of 2, made for 100 rows" in session.edit(run, {"x": OTHER}, region=MEDIUM).report.notes
        result = session.edit(run, {"x": OTHER}, region=LARGE)
        assert result.report.path == "dense"
        assert "no profile of the engine (made for 16, 100 rows) takes the region" in result.report.reason
        with pytest.raises(EngineError, match="takes the edit, but no profile .*--profile rows=all"):
            session.edit(run, {"x": OTHER}, region=LARGE, fallback=False)


def test_a_run_that_fails_does_not_spoil_the_next(
    built: Bundle, stock: EditSession, card: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        with monkeypatch.context() as patch:
            patch.setattr(fake_runtime.Context, "execute_async_v3", lambda *_: False)
            with pytest.raises(EngineError, match="tensorrt-rtx refuses a run of (prep|edit).onnx: no message"):
                session.edit(run, {"x": OTHER}, region=SMALL)
        result = session.edit(run, {"x": OTHER}, region=SMALL)
        expected = stock.edit(stock.base(FEEDS), {"x": OTHER}, region=SMALL, fallback=False)
        assert result.outputs["y"].tobytes() == expected.outputs["y"].tobytes()


def test_states_of_commits_do_not_leave_the_card(built: Bundle, stock: EditSession, card: FakeCuda) -> None:
    scattered = np.zeros((16, 16), bool)
    scattered[[0, 3, 3, 8], [5, 1, 2, 15]] = True
    with EditSession(built, engine=ENGINE) as session:
        ours, theirs = session.base(FEEDS), stock.base(FEEDS)
        for region in (SMALL, Region.from_mask(scattered, "exact")):
            edit = session.edit(ours, {"x": OTHER}, region=region, record=True)
            before = stock.edit(theirs, {"x": OTHER}, region=region, record=True)
            card.calls.clear()
            got, expected = edit.commit(), before.commit()
            down = [call[2] for call in card.calls if call[:2] == ("cudaMemcpyAsync", "DeviceToHost")]
            assert sum(down) == 0
            for name, value in got.states.items():
                assert np.allclose(value.numpy(), expected.states[name].numpy(), rtol=0, atol=1e-5), name


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("rows", [[], [0], [5], [1, 2, 3], [0, 2, 3, 5], [4, 1, 2]])
@pytest.mark.parametrize("most", [0, 1024])
def test_rows_are_merged_and_taken_on_the_card(
    built: Bundle, card: FakeCuda, axis: int, rows: list[int], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retouch.engines.tensorrt._rows._MOST_COPIES", most)
    engine, host = TensorRtEngine(built, Target.TENSORRT_RTX), OrtEngine()
    generator = np.random.default_rng(axis)
    numbers = np.array(rows, np.int64)
    shape = [2, 3, 4]
    shape[axis] = 6
    base = generator.standard_normal(shape).astype(np.float32)
    shape[axis] = len(rows)
    update = generator.standard_normal(shape).astype(np.float32)
    expected = base.copy()
    np.moveaxis(expected, axis, 0)[numbers] = np.moveaxis(update, axis, 0)
    for on in (engine, host):
        assert np.array_equal(on.merged(on.value(base), on.value(update), numbers, axis).numpy(), expected)
        assert np.array_equal(on.taken(on.value(base), numbers, axis).numpy(), base.take(numbers, axis))


def test_break_evens_are_measured_on_engines(built: Bundle, card: FakeCuda, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(built.path, copy)
    with pytest.raises(EngineError, match="takes the edit, but no profile"):
        calibrate(copy, engine=ENGINE, repeats=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retouch.trt_plugins._build.compile_graph", fake_runtime.compiled)
        patch.delitem(sys.modules, "tensorrt_rtx")
        build(copy, BuildOptions(Target.TENSORRT_RTX, rows=("16", "all")))
    measured = calibrate(copy, engine=ENGINE, repeats=1)
    assert Bundle.open(copy).manifest.break_even == {ENGINE: measured}
    with EditSession(copy, engine=ENGINE) as session:
        report = session.edit(session.base(FEEDS), {"x": OTHER}, region=SMALL).report
        assert "break-even" in report.reason and "no break-even" not in report.reason


def test_several_edits_run_one_by_one_where_no_stacked_engine_was_built(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run = session.base(FEEDS)
        results = session.edit_many(run, [EditRequest(SMALL, {"x": OTHER}), EditRequest(SMALL, {"x": OTHER * 2})])
        reasons = [result.report.reason for result in results]
        assert all("on its own: " in reason for reason in reasons), reasons


def test_states_move_to_the_host_when_the_card_is_full(
    built: Bundle, stock: EditSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = installed(monkeypatch, FakeCuda())
    with EditSession(built, engine=ENGINE) as session:
        runs = [session.base({"x": X * factor, "step": STEP}) for factor in (1, 2)]
        session.edit(runs[1], {"x": OTHER}, region=SMALL)
        card.capacity = card.used + 1000
        runs.append(session.base({"x": X * 3, "step": STEP}))
        assert not any(value.on_device for value in runs[0].states.values())
        assert all(value.on_device for value in runs[2].states.values())
        for factor, run in enumerate(runs, 1):
            result = session.edit(run, {"x": OTHER}, region=SMALL)
            if factor == 1:
                assert any("memory was full" in note and "moved to host memory" in note for note in result.report.notes)
            expected = stock.edit(stock.base({"x": X * factor, "step": STEP}), {"x": OTHER}, region=SMALL)
            assert result.outputs["y"].tobytes() == expected.outputs["y"].tobytes()


def test_a_card_that_is_too_small_says_so(built: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, FakeCuda(capacity=20_000))
    with EditSession(built, engine=ENGINE) as session, pytest.raises(EngineError, match="MiB of the memory of Fake 40"):
        session.base(FEEDS)


def test_memory_is_given_back_with_runs_and_sessions(built: Bundle, card: FakeCuda) -> None:
    session = EditSession(built, engine=ENGINE)
    run = session.base(FEEDS)
    session.edit(run, {"x": OTHER}, region=SMALL)
    before = card.used
    session.base(FEEDS).close()
    assert card.used == before
    session.drop(run)
    assert card.used < before
    session.close()
    del session, run
    assert card.used == 0
    assert len(card.queues) == 1  # what is left is the stream that memory was given back on


def test_threads_run_beside_each_other(built: Bundle, stock: EditSession, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        run, theirs = session.base(FEEDS), stock.base(FEEDS)
        got: dict[int, bytes] = {}

        def work(number: int) -> None:
            for _ in range(3):
                got[number] = session.edit(run, {"x": OTHER * number}, region=SMALL).outputs["y"].tobytes()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(4):
            expected = stock.edit(theirs, {"x": OTHER * number}, region=SMALL, fallback=False)
            assert got[number] == expected.outputs["y"].tobytes()


def test_tensors_of_other_libraries_come_and_go_without_the_host(built: Bundle, card: FakeCuda) -> None:
    with EditSession(built, engine=ENGINE) as session:
        expected = session.base(FEEDS)
        x, other = (torch.from_numpy(card.holds(array.copy())) for array in (X, OTHER))
        card.calls.clear()
        run = session.base({"x": x, "step": STEP})
        uploads = [call[2] for call in card.calls if call[:2] == ("cudaMemcpyAsync", "HostToDevice")]
        assert uploads == [STEP.nbytes]
        assert run.outputs["y"].tobytes() == expected.outputs["y"].tobytes()
        result = session.edit(run, {"x": other}, region=SMALL)
        for read in (torch.from_dlpack, np.from_dlpack):
            taken = read(result.values["y"])
            assert np.array_equal(np.asarray(taken), result.outputs["y"])
        assert taken.__array_interface__["data"][0] in card.blocks
        for wrong, message in (
            (torch.from_numpy(card.holds(X[..., 1:].copy())), "of shape"),
            (torch.from_numpy(card.holds(X.astype(np.float64))), "convert it there"),
            (torch.zeros(1, 4, 16, 32)[..., ::2], "Make it contiguous"),
            (torch.zeros(1, 4, 16, 16, requires_grad=True), "detach"),
        ):
            with pytest.raises(FeedError, match=message):
                session.edit(run, {"x": wrong}, region=SMALL)
        with pytest.raises(FeedError, match="missing 'step'"):
            session.base({"x": x})


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
    with pytest.raises(RetouchError, match="one of 'onnxruntime', 'tensorrt-rtx', 'tensorrt', got 'trt'"):
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
        edit = session._resolved(runtime, run.id, EditRequest(SMALL, {"x": OTHER}), "cached")
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
    """Version 4 knew no traits of engines."""
    copy = tmp_path / "copy"
    shutil.copytree(built.path, copy)
    data = json.loads((copy / "manifest.json").read_text())
    data["schema_version"] = 4
    for spec in data["engines"].values():
        del spec["traits"]
    (copy / "manifest.json").write_text(json.dumps(data))
    assert Bundle.open(copy).manifest == built.manifest
    update_manifest(copy, built.manifest)
