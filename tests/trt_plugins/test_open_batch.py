"""Graphs whose batch is open give for every batch what exports for that batch give."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from retouch import EditSession
from retouch.bundle import Bundle, at_batch
from retouch.cli import app
from retouch.engines import Target
from retouch.errors import BuildRequestError, BundleError, FeedError, RetouchError
from retouch.export import ExportOptions
from retouch.models import Sizes, TorchOptions, export_torch
from retouch.trt_plugins import BatchRange, BuildOptions, build
from retouch.trt_plugins._graphs import graphs_of, load_graph
from retouch.trt_plugins._open_batch import with_open_batch
from tests.trt_plugins.batches import edits, exported

CPU = ("CPUExecutionProvider",)


def options(other: Bundle, least: int = 1, most: int = 5) -> BuildOptions:
    return BuildOptions(Target.ORT, devices=CPU, batch=BatchRange(least, most, other.path))


@pytest.fixture(scope="module")
def of_two(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return exported(model, tmp_path_factory.mktemp("batches"), 2)


@pytest.fixture(scope="module")
def of_three(model: Path, of_two: Bundle) -> Bundle:
    return exported(model, of_two.path.parent, 3, of_two.path)


@pytest.fixture(scope="module")
def built(of_two: Bundle, of_three: Bundle) -> Bundle:
    build(of_two, options(of_three))
    return Bundle.open(of_two.path)


@pytest.mark.parametrize("batch", [1, 2, 4, 5])
def test_sessions_of_any_batch_give_what_exports_for_it_give(
    built: Bundle, model: Path, tmp_path: Path, batch: int
) -> None:
    with EditSession(at_batch(built, batch), CPU, threads=1, engine="ort") as session:
        got = edits(session, batch)
    with EditSession(exported(model, tmp_path, batch), CPU, threads=1) as session:
        expected = edits(session, batch)
    # An export for one sample has states without an axis for it, so that only outputs are of the same shapes.
    for one, other in zip(got[: None if batch > 1 else 3], expected[: None if batch > 1 else 3], strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() <= 2e-6 * np.abs(other).max()


def test_without_being_told_sessions_run_the_batch_of_the_export(built: Bundle, of_two: Bundle) -> None:
    with EditSession(built, CPU, threads=1, engine="ort") as session:
        assert edits(session, 2)[0].shape[0] == 2
        with pytest.raises(FeedError, match=r"of shape \(2, 4, 16, 16\), got \(3, 4, 16, 16\)"):
            edits(session, 3)
    assert {spec.traits for spec in built.manifest.engines.values()} == {("open-batch",)}
    ranges = [spec.profiles[0].dims.get("batch") for spec in built.manifest.engines.values() if spec.batch_axes]
    assert ranges == [(1, 2, 5)] * 2


def test_batches_that_no_engine_serves(built: Bundle, of_three: Bundle) -> None:
    with pytest.raises(BundleError, match="for batches of 6 .*ranges of batches: 1 to 5. Build them .*batch=LEAST"):
        at_batch(built, 6)
    with pytest.raises(BundleError, match="ranges of batches: none"):
        at_batch(of_three, 2)
    with pytest.raises(RetouchError, match="built for batches of 4, got 'onnxruntime'.*tensorrt-rtx"):
        EditSession(at_batch(built, 4)).open()
    with pytest.raises(BuildRequestError, match=r"bundle's own, which is 2, got 3\.\.4"):
        build(built, options(of_three, 3, 4))


def test_bundles_that_differ_by_more(of_two: Bundle, of_three: Bundle, model: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildRequestError, match="no base.onnx with the same outputs.*batches of two or more"):
        build(of_two, options(exported(model, tmp_path, 1, of_two.path)))
    half = exported(model, tmp_path, 3, precision="float16")
    with pytest.raises(BuildRequestError, match="differ by their batches alone, but"):
        build(of_two, options(half))
    bare = Bundle(of_three.path, of_three.manifest.replace(files={}))
    (graph, *_) = graphs_of(of_two, ["cached"])
    with pytest.raises(BuildRequestError, match="has no base.onnx with the same outputs"):
        load_graph(of_two, graph, bare)


def graph(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> {text}')


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ("y = Relu(x)", "y = Abs(x)", "Relu '' stands where the other has Abs"),
        ("a = Relu(x) y = Add(a, x)", "a = Relu(x) y = Add(x, x)", "reads a where the other reads x"),
        ("y = Add(x, c)", "y = Add(x, d)", "depends on the batch and is no shape"),
        ("y = Expand(x, three)", "y = Expand(x, four)", "no multiple of the batch"),
        ("y = Add(x, rows)", "y = Add(x, others)", "not the same for every sample"),
    ],
)
def test_graphs_that_are_no_instances_of_one(one: str, other: str, message: str) -> None:
    constants = (
        "<float[1] c = {1}, float[1] d = {2}, int64[2] three = {3, 1}, int64[2] four = {4, 1}, "
        "float[2,1] rows = {1, 2}, float[4,1] others = {1, 2, 1, 2}>"
    )
    models = [
        graph(f"g (float[{batch},1] x) => (float[{batch},1] y) {constants} {{ {text} }}")
        for batch, text in ((2, one), (4, other))
    ]
    with pytest.raises(BuildRequestError, match=message):
        with_open_batch(*models)


def test_edges_and_operators_that_are_no_instances_of_one() -> None:
    two = graph("g (float[2,1] x) => (float[2,1] y) { y = Relu(x) }")
    for text, message in (
        ("g (float[4,1] z) => (float[4,1] y) { y = Relu(z) }", "x and z stand in the same place"),
        ("g (float[4,3] x) => (float[4,3] y) { y = Relu(x) }", "differ as 1 and 3, 2 and 4"),
        ("g (float[4,1] x, float s) => (float[4,1] y) { y = Relu(x) }", "where the other has 2"),
    ):
        with pytest.raises(BuildRequestError, match=message):
            with_open_batch(two, graph(text))
    other = graph(
        'g (float[4,1] x) => (float[4,1] y) { y = Relu(x) } <domain: "d", opset_import: ["" : 18]> F (a) => (b)'
        " { b = Relu(a) }"
    )
    with pytest.raises(BuildRequestError, match="operators F have different bodies"):
        with_open_batch(two, other)


def test_a_network_with_attention_and_norms(tmp_path: Path) -> None:
    import diffusers
    import torch

    torch.manual_seed(0)
    unet = diffusers.UNet2DConditionModel(
        sample_size=8, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4, cross_attention_dim=12,
        attention_head_dim=4, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip
    unet.save_pretrained(tmp_path / "unet")

    def bundle(batch: int, share: Path | None = None) -> Bundle:
        sizes = Sizes(batch=batch, text=3)
        kept = ExportOptions(verify=False, share=share)
        return export_torch(tmp_path / "unet", tmp_path / f"{batch}", TorchOptions(sizes=sizes, export=kept))

    two = bundle(2)
    build(two, dataclasses.replace(options(bundle(3, two.path)), group_norm=("corrected",)))

    def outputs(session: EditSession) -> list[np.ndarray]:
        generator, inputs = np.random.default_rng(0), session.bundle.manifest.inputs
        feeds = {spec.name: generator.standard_normal(spec.shape).astype(spec.dtype) for spec in inputs}
        run = session.base(feeds)
        name, *_ = feeds
        mask = np.zeros((8, 8), bool)
        mask[2:5, 3:6] = True
        edit = session.edit(run, {name: feeds[name] + np.float32(1)}, region=mask, fallback=False)
        return [*run.outputs.values(), *edit.outputs.values()]

    with EditSession(at_batch(Bundle.open(two.path), 4), CPU, threads=1, group_norm="corrected", engine="ort") as ours:
        got = outputs(ours)
    with EditSession(bundle(4, two.path), CPU, threads=1, group_norm="corrected") as stock:
        expected = outputs(stock)
    for one, other in zip(got, expected, strict=True):
        assert np.abs(one - other).max() <= 1e-5 * np.abs(other).max()


def test_the_command_and_build_files(model: Path, tmp_path: Path) -> None:
    two = exported(model, tmp_path, 2)
    three = exported(model, tmp_path, 3, two.path)
    command = ["build", str(two.path), "--engine", "ort", "--device", CPU[0], "--profile", "batch=1..4"]
    said = CliRunner().invoke(app, [*command, "--other-batch", str(three.path), "--json", "-"])
    assert said.exit_code == 0, said.output
    engines = json.loads(said.stdout)["engines"]
    assert [engine["profiles"][0]["dims"]["batch"] for engine in engines if engine["batch_axes"]] == [[1, 2, 4]] * 2
    recipe = tmp_path / "retouch.toml"
    recipe.write_text(
        'bundle = "made"\n[model]\nsource = "batch2.onnx"\ninput = "x"\nmin_coverage = 0.0\n'
        f'[[engine]]\ntarget = "ort"\ndevices = ["{CPU[0]}"]\nbatch = "1..4"\nother_batch = "batch3"\n'
    )
    assert CliRunner().invoke(app, ["build", str(recipe)]).exit_code == 0
    assert at_batch(Bundle.open(tmp_path / "made"), 4).manifest.inputs[0].shape == (4, 4, 16, 16)
