"""Graphs that optimum exported give the plans of our own exports."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

from optimum.exporters.onnx import main_export

from retouch.export import ExportOptions, export_onnx
from retouch.models import Sizes, TorchOptions, export_torch
from tests.plan_shares import shares

SIZES = {"batch": 2, "num_channels": 4, "sequence_length": 5} | dict.fromkeys(
    ("height", "width", "latent_height", "latent_width"), 8
)
PARTS = {"unet": ("unet", None, "sample"), "vae_decoder": ("vae", "decoder", "latent_sample")}


@pytest.fixture(scope="module")
def theirs(saved_pipeline: Path) -> Path:
    target = saved_pipeline.parent / "optimum"
    main_export(
        str(saved_pipeline),
        target,
        task="text-to-image",
        library_name="diffusers",
        do_validation=False,
        sequence_length=SIZES["sequence_length"],
    )
    return target


@pytest.mark.parametrize("name", PARTS)
def test_the_plan_is_that_of_our_export(name: str, theirs: Path, saved_pipeline: Path, tmp_path: Path) -> None:
    folder, part, editable = PARTS[name]
    sizes = Sizes(batch=2, text=5 if name == "unet" else None, height=8, width=8)
    ours = export_torch(saved_pipeline / folder, tmp_path / "ours", TorchOptions(part, sizes))
    graph = theirs / name / "model.onnx"
    inputs = onnx.load(graph, load_external_data=False).graph.input
    dims = {dim.dim_param for value in inputs for dim in value.type.tensor_type.shape.dim}
    fix = {dim: size for dim, size in SIZES.items() if dim in dims or dim == "batch"}
    options = ExportOptions(editable=editable, axes=(2, 3), fix=fix)
    bundle = export_onnx(graph, tmp_path / "bundle", options)
    assert bundle.manifest.coverage >= 0.99
    assert shares(bundle) == pytest.approx(shares(ours), abs=0.01)
