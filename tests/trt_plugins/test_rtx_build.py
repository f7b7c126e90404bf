"""Engines of TensorRT-RTX, really built on the CPU: what is built, kept, refused and left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorrt_rtx as trt

from retouch.bundle import Bundle
from retouch.engines.tensorrt import Messages, logger, with_given_operands
from retouch.errors import BuildError, BuildRequestError, BundleError
from retouch.export import ExportOptions, export_onnx
from retouch.trt_plugins import BuildOptions, Precision, Target, build, outdated
from retouch.trt_plugins._graphs import LoadedGraph
from retouch.trt_plugins._parse import parse
from tests.full_disk import files_limited_to

RTX = BuildOptions(Target.TENSORRT_RTX, rows=("10", "all"))


def sole(bundle: Bundle) -> list[str]:
    return sorted(path.relative_to(bundle.path).as_posix() for path in bundle.path.rglob("*.engine"))


def test_base_and_edit_graphs_become_engines_that_the_manifest_lists(bundle: Bundle) -> None:
    lines: list[str] = []
    made = build(bundle, RTX, tell=lines.append)
    manifest = Bundle.open(bundle.path).manifest
    assert [engine.spec.graph for engine in made] == ["base.onnx", "prep.onnx", "edit.onnx"]
    assert {engine.name: engine.spec for engine in made} == dict(manifest.engines)
    assert sole(bundle) == sorted(manifest.engines)
    for engine in made:
        assert not engine.kept and engine.layers is not None and engine.layers > 0
        assert engine.spec.version == trt.__version__ and engine.spec.precision == "float32"
        assert Bundle.open(bundle.path).engine(engine.name)[0].stat().st_size == engine.spec.file.bytes > 1000
    assert [profile.rows for profile in made[2].spec.profiles] == [10, 256]
    assert made[0].spec.profiles == ()
    for text in ("base.onnx: parse", "edit.onnx: building engine", "edit.onnx: write"):
        assert any(line.startswith(text) for line in lines), lines


def test_engines_compute_what_sessions_ask_for(bundle: Bundle) -> None:
    base, prep, edit = (engine.spec for engine in build(bundle, RTX))
    spec = bundle.manifest.edits["cached"]
    assert base.outputs == ("y", *(f"cacheable.{item}" for item in (*spec.cached, *spec.prep_cached)))
    assert prep.outputs == tuple(tensor.name for tensor in spec.prepared)
    assert edit.outputs == ("y", *(f"update.{item}" for item in spec.updates))


def test_only_what_changed_is_built_again(bundle: Bundle) -> None:
    first = build(bundle, RTX)
    again = build(bundle.path, RTX)
    assert [engine.kept for engine in again] == [True, True, True]
    assert [engine.spec for engine in again] == [engine.spec for engine in first]
    opened = Bundle.open(bundle.path)
    assert outdated(opened, RTX) == []
    other_rows = BuildOptions(Target.TENSORRT_RTX, rows=("20", "all"))
    assert outdated(opened, other_rows) == ["edit.onnx"]
    assert [engine.kept for engine in build(opened, other_rows)] == [True, True, False]
    assert len(sole(bundle)) == 3
    tf32 = BuildOptions(Target.TENSORRT_RTX, Precision.TF32, rows=("20", "all"))
    assert len(outdated(Bundle.open(bundle.path), tf32)) == 3


def test_a_damaged_engine_is_built_again(bundle: Bundle) -> None:
    names = [engine.name for engine in build(bundle, RTX)]
    (bundle.path / names[0]).write_bytes(b"cut short")
    (bundle.path / names[1]).unlink()
    assert outdated(Bundle.open(bundle.path), RTX) == ["base.onnx", "prep.onnx"]
    assert [engine.kept for engine in build(bundle.path, RTX)] == [False, False, True]
    for name, engine in Bundle.open(bundle.path).manifest.engines.items():
        assert (bundle.path / name).stat().st_size == engine.file.bytes


def test_devices_that_are_asked_for_are_recorded(bundle: Bundle) -> None:
    options = BuildOptions(Target.TENSORRT_RTX, rows=("all",), devices=("8.6", "12.0"))
    assert {engine.spec.devices for engine in build(bundle, options)} == {("8.6", "12.0")}
    with pytest.raises(BuildRequestError, match=r"capabilities among 7\.5, 8\.0, .*12\.1, got 9\.0"):
        build(bundle, BuildOptions(Target.TENSORRT_RTX, devices=("9.0",)))


def test_nodes_that_the_parser_does_not_take_are_all_named(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 18]>
        image (float[1,4,8,8] x, float[1,3,3] m) => (float[1,4,8,8] y) {
            one = Det(m)
            product = MatMul(m, m)
            other = Det(product)
            both = Add(one, other)
            y = Mul(x, both)
        }""")
    for node in model.graph.node:
        node.name = f"the_{node.output[0]}"
    onnx.save(model, tmp_path / "model.onnx")
    bundle = export_onnx(tmp_path / "model.onnx", tmp_path / "b", ExportOptions(editable="x", min_coverage=0.0))
    with pytest.raises(BuildError) as raised:
        build(bundle, RTX)
    for text in ("refuses 2", "Det 'the_one': the operator is not supported", "Det 'the_other'", "ONNX Runtime"):
        assert text in str(raised.value)
    assert Bundle.open(bundle.path) == bundle and sole(bundle) == []


LEAVES_OUT = """
<ir_version: 10, opset_import: ["" : 18, "ai.retouch" : 1]>
g (float[2,4] x, float[4,4] w, float[4] b) => (float[2,4] y) {
    one = ai.retouch.Product(x, w)
    two = ai.retouch.Product(one, w, b)
    three = ai.retouch.Product(two, w, "", b)
    y = ai.retouch.Product(three, w, b, b)
}
<domain: "ai.retouch", opset_import: ["" : 18]>
Product (x, w, bias, other) => (y) {
    p = Gemm(x, w, bias)
    q = Gemm(p, w, other)
    y = Sigmoid(q)
}
"""


def test_operands_may_be_left_out() -> None:
    """ONNX leaves operands of functions out, TensorRT's parser does not take that."""
    model = onnx.parser.parse_model(LEAVES_OUT)
    generator = np.random.default_rng(0)
    shapes = {"x": (2, 4), "w": (4, 4), "b": (4,)}
    feeds = {name: generator.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    given = with_given_operands(model)
    assert [len(node.input) for node in given.graph.node] == [2, 3, 3, 4]
    sessions = [onnxruntime.InferenceSession(one.SerializeToString()) for one in (model, given)]
    (expected,), (got,) = (session.run(None, feeds) for session in sessions)
    assert np.array_equal(got, expected)
    messages = Messages()
    log = logger(trt, messages)
    network = trt.Builder(log).create_network(0)
    parse(trt, network, log, LoadedGraph(model, Path(), "", ""), messages, "model.onnx")
    assert network.num_layers > 4 and messages.errors == []
    assert [len(node.input) for node in model.graph.node] == [2, 3, 4, 4]


def test_a_bundle_in_half_precision_is_built_in_it(model: Path, tmp_path: Path) -> None:
    bundle = export_onnx(
        model, tmp_path / "half", ExportOptions(editable="x", min_coverage=0.0, precision="float16", verify=False)
    )
    assert {engine.spec.precision for engine in build(bundle, RTX)} == {"float16"}
    with pytest.raises(BuildRequestError, match=r"precision float16, .*got float32.*--precision float32"):
        build(bundle, BuildOptions(Target.TENSORRT_RTX, Precision.FLOAT32))


def test_weights_of_a_shared_file_are_found(sharing: Bundle) -> None:
    assert (sharing.path / "shared.json").is_file()
    assert all(engine.spec.file.bytes > 1000 for engine in build(sharing, RTX))


def test_a_bundle_that_cannot_be_written_to_is_told_before_anything_is_built(bundle: Bundle) -> None:
    (bundle.path / "engines").write_bytes(b"in the way")
    lines: list[str] = []
    with pytest.raises(BundleError, match="Engines cannot be written to.*Make the bundle writable"):
        build(bundle, RTX, tell=lines.append)
    assert lines == []
    assert Bundle.open(bundle.path).manifest.engines == {}


def test_a_full_disk_leaves_the_engines_that_were_there(bundle: Bundle) -> None:
    names = sorted(engine.name for engine in build(bundle, RTX))
    others = BuildOptions(Target.TENSORRT_RTX, rows=("20", "all"))
    with files_limited_to(1000), pytest.raises(BundleError, match="edit-float32.* cannot be written: .*Make room"):
        build(bundle.path, others)
    assert sorted(Bundle.open(bundle.path).manifest.engines) == sole(bundle) == names
    assert not any((bundle.path / "engines").rglob(".*"))
    assert [engine.kept for engine in build(bundle.path, others)] == [True, True, False]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_an_interrupted_build_leaves_whole_engines_only_and_goes_on_later(
    bundle: Bundle, number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(bundle.path), str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    manifest = Bundle.open(bundle.path).manifest
    assert [engine.graph for engine in manifest.engines.values()] == ["base.onnx", "prep.onnx"]
    assert sole(bundle) == sorted(manifest.engines)
    assert [engine.kept for engine in build(bundle.path, RTX)] == [True, True, False]


INTERRUPTED = """
import os, signal, sys
import retouch.trt_plugins._compile as compile
from retouch.cli import main

path, number = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
before = compile.progress_monitor

def monitor(trt, name, tell, cancelled):
    made = before(trt, name, tell, cancelled)
    start = type(made).phase_start

    def phase_start(self, phase, parent, steps):
        start(self, phase, parent, steps)
        if name == "edit.onnx" and parent is None:
            os.kill(os.getpid(), number)
            assert cancelled.wait(20)

    type(made).phase_start = phase_start
    return made

compile.progress_monitor = monitor
sys.argv = ["retouch", "build", path, "--profile", "rows=10,all"]
main()
"""


def test_of_two_builds_at_once_one_waits_and_finds_everything_done(bundle: Bundle) -> None:
    command = [sys.executable, "-c", AT_WORK, str(bundle.path)]
    lines: list[str] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == b"at work\n"

        def tell(line: str) -> None:
            assert other.stdin is not None
            lines.append(line)
            other.stdin.close()

        made = build(bundle, RTX, tell=tell)
        assert other.wait(60) == 0
    assert lines == [f"{bundle.path}: another build is at work, wait for it"]
    assert [engine.kept for engine in made] == [True] * 3
    assert sorted(engine.name for engine in made) == sole(bundle)


AT_WORK = """
import sys
from retouch.trt_plugins import BuildOptions, Target, build

def tell(line):
    if line == "base.onnx: parse":
        print("at work", flush=True)
        sys.stdin.read()

build(sys.argv[1], BuildOptions(Target.TENSORRT_RTX, rows=("10", "all")), tell=tell)
"""
