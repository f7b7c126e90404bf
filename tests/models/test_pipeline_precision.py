"""Pipelines whose components have precisions of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import retouch
from retouch import Bundle
from retouch.errors import ExportError
from retouch.export import ExportOptions
from retouch.models import Sizes, TorchOptions, export_pipeline

SIZES = Sizes(batch=2, text=5)
HALVES = {"unet": "float16", "text_encoder": "float16", "vae_decoder": "float32"}


@pytest.fixture(scope="module")
def single(pipeline: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("single") / "out"
    export_pipeline(pipeline, out, TorchOptions(sizes=SIZES))
    return out


@pytest.fixture(scope="module")
def mixed(pipeline: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mixed") / "out"
    export_pipeline(pipeline, out, TorchOptions(sizes=SIZES, precisions=HALVES))
    return out


def types_of(path: Path) -> tuple[set[int], set[int]]:
    """The floating-point types of a graph's matrices, and those of its inputs and outputs."""
    graph = onnx.load(path, load_external_data=False).graph
    edges = {value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    return {tensor.data_type for tensor in graph.initializer if len(tensor.dims) > 1}, edges


def test_every_component_is_of_its_precision_with_single_edges(mixed: Path) -> None:
    halves, singles = {TensorProto.FLOAT16}, {TensorProto.FLOAT}
    integers = {TensorProto.INT32, TensorProto.INT64}
    for name, wanted in (
        ("unet", halves),
        ("text_encoder", halves),
        ("vae_decoder", singles),
        ("vae_encoder", singles),
    ):
        weights, edges = types_of(mixed / name / "model.onnx")
        assert weights - integers == wanted, name
        assert edges - integers == singles, name
    kept = {spec.dtype for spec in Bundle.open(mixed / "unet" / "bundle").manifest.cacheables}
    assert "float16" in kept
    described = json.loads((mixed / "retouch.json").read_text())["components"]
    assert {name: entry.get("precision") for name, entry in described.items()} == {**HALVES, "vae_encoder": None}


def test_half_weights_take_half_the_room(single: Path, mixed: Path) -> None:
    sizes = [(out / "unet" / "bundle" / "weights.bin").stat().st_size for out in (single, mixed)]
    assert sizes[1] < 0.6 * sizes[0]


def test_diffusers_runs_it(single: Path, mixed: Path, painter: Any) -> None:
    expected, got = painter(single).call(3), painter(mixed).call(3)
    assert not np.array_equal(got, expected)
    assert np.abs(got - expected).max() < 2e-2


def test_its_sessions_edit(mixed: Path, painter: Any) -> None:
    paint = painter(mixed)
    mask = np.zeros((16, 16), bool)
    mask[4:8, 4:8] = True
    for name in ("unet", "vae_decoder"):
        paint.parts[name].model = retouch.InferenceSession(mixed / name / "model.onnx")
    with retouch.attach(paint.pipeline) as attached:
        with attached.record():
            base = paint.call(3)
        with attached.edit(mask, policy="exact"):
            edited = paint.call(7)
    changed = (edited != base).any((0, 3))
    assert changed[mask].all() and not changed[~mask].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precisions": {"vae": "float16"}}, r"among .*'vae_decoder'.*'unet'.*got one of 'vae'"),
        ({"precisions": {"unet": "int8"}}, "precision to be 'float32' or 'float16', got 'int8'"),
        ({"precisions": {"unet": "bfloat16"}}, r"bfloat16 was asked for unet.*Take float32, or float16"),
        ({"export": ExportOptions(precision="half")}, "precision to be 'float32' or 'float16', got 'half'"),
    ],
)
def test_what_is_refused_before_anything_is_written(
    pipeline: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    lines: list[str] = []
    with pytest.raises(ExportError, match=message):
        export_pipeline(pipeline, tmp_path / "out", TorchOptions(sizes=SIZES, **options), tell=lines.append)
    assert not lines and not (tmp_path / "out").exists()


def test_one_precision_for_all(pipeline: Path, tmp_path: Path) -> None:
    options = TorchOptions(sizes=SIZES, export=ExportOptions(precision="float16"), precisions={"unet": "float32"})
    export_pipeline(pipeline, tmp_path / "out", options)
    described = json.loads((tmp_path / "out" / "retouch.json").read_text())["components"]
    precisions = {name: entry["precision"] for name, entry in described.items()}
    assert precisions == {
        "unet": "float32",
        "vae_encoder": "float16",
        "vae_decoder": "float16",
        "text_encoder": "float16",
    }
