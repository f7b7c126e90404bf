"""Engines of TensorRT-RTX for a range of batches, really built on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorrt_rtx as trt

from retouch.bundle import Bundle, at_batch
from retouch.engines.tensorrt import Messages, logger
from retouch.export import ExportOptions
from retouch.models import Sizes, TorchOptions, export_torch
from retouch.trt_plugins import BatchRange, BuildOptions, Target, build, outdated
from retouch.trt_plugins._graphs import graphs_of, load_graph
from retouch.trt_plugins._parse import parse, strongly_typed
from tests.trt_plugins.batches import exported

SMALL_UNET = {
    "sample_size": 16, "block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 8,
    "cross_attention_dim": 16, "attention_head_dim": 8, "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}  # fmt: skip


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_base_and_edit_graphs_become_engines_for_a_range_of_batches(
    model: Path, tmp_path: Path, precision: str
) -> None:
    two = exported(model, tmp_path, 2, precision=precision)
    three = exported(model, tmp_path, 3, two.path, precision)
    options = BuildOptions(Target.TENSORRT_RTX, rows=("10", "all"), batch=BatchRange(1, 6, three.path))
    base, prep, edit = build(two, options)
    assert [profile.dims["batch"] for profile in (*base.spec.profiles, *edit.spec.profiles)] == [(1, 2, 6)] * 3
    assert [profile.rows for profile in edit.spec.profiles] == [10, 256]
    assert base.spec.batch_axes["x"] == (0,) and prep.spec.profiles == ()
    assert outdated(Bundle.open(two.path), options) == []
    wider = BuildOptions(Target.TENSORRT_RTX, rows=("10", "all"), batch=BatchRange(1, 8, three.path))
    assert outdated(Bundle.open(two.path), wider) == ["base.onnx", "edit.onnx"]
    assert at_batch(Bundle.open(two.path), 6).manifest.outputs[0].tensor.shape == (6, 4, 16, 16)


def test_the_parser_sees_an_open_batch(model: Path, tmp_path: Path) -> None:
    two = exported(model, tmp_path, 2)
    three = exported(model, tmp_path, 3, two.path)
    for graph in graphs_of(two, ["cached"]):
        loaded, messages = load_graph(two, graph, three), Messages()
        log = logger(trt, messages)
        network = trt.Builder(log).create_network(strongly_typed(trt))
        parser = parse(trt, network, log, loaded, messages, graph.file)
        tensors = [network.get_input(number) for number in range(network.num_inputs)]
        tensors += [network.get_output(number) for number in range(network.num_outputs)]
        for tensor in tensors:
            assert all(tensor.shape[axis] == -1 for axis in loaded.batch_axes.get(tensor.name, ()))
        assert messages.errors == []
        del parser


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_network_with_attention_and_norms(tmp_path: Path, precision: str) -> None:
    import diffusers
    import torch

    torch.manual_seed(0)
    diffusers.UNet2DConditionModel(**SMALL_UNET).save_pretrained(tmp_path / "unet")

    def bundle(batch: int, share: Path | None = None) -> Bundle:
        kept = ExportOptions(verify=False, share=share, precision=precision)
        options = TorchOptions(sizes=Sizes(batch=batch, text=5), export=kept)
        return export_torch(tmp_path / "unet", tmp_path / f"{batch}", options)

    two = bundle(2)
    batch = BatchRange(1, 4, bundle(3, two.path).path)
    made = build(two, BuildOptions(Target.TENSORRT_RTX, rows=("10%",), group_norm=("cached",), batch=batch))
    assert {engine.spec.precision for engine in made} == {precision}
    opened = [engine.spec for engine in made if engine.spec.batch_axes]
    assert {spec.graph for spec in opened} >= {"base.onnx", "edit.onnx"}
    assert all(profile.dims["batch"] == (1, 2, 4) for spec in opened for profile in spec.profiles)
