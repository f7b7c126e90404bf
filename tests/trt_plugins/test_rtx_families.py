"""Every family's base and edit graphs are taken by TensorRT-RTX's parser and become engines, in both precisions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from retouch.bundle import Bundle
from retouch.export import ExportOptions, export_onnx
from retouch.models import Sizes, TorchOptions, export_torch
from retouch.trt_plugins import BuildOptions, Target, build
from retouch.validation.reference_models import export_reference

FLUX = {
    "num_attention_heads": 2, "attention_head_dim": 8, "patch_size": 1, "in_channels": 8, "num_layers": 1,
    "num_single_layers": 1, "joint_attention_dim": 8, "pooled_projection_dim": 8, "guidance_embeds": True,
    "axes_dims_rope": (2, 2, 4),
}  # fmt: skip
SIZES = Sizes(text=5, height=8, width=8)
STACKED = {"dit_tiny", "llada_tiny", "unet2d_condition_tiny"}
"""FLUX has a text that every edit computes anew, so that its edits share no run."""


@pytest.fixture(scope="session")
def flux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of FLUX's shape, saved."""
    import diffusers
    import torch

    from retouch.validation.reference_models._weights import draw_weights

    folder = tmp_path_factory.mktemp("flux") / "model"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = diffusers.FluxTransformer2DModel(**FLUX)
        draw_weights(model)
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def exported(request: pytest.FixtureRequest, reference_models: Path, tmp_path: Path) -> Callable[[str, str], Bundle]:
    def export(name: str, precision: str) -> Bundle:
        options = ExportOptions(precision=precision, verify=False)
        if name == "flux":
            saved = request.getfixturevalue("flux")
            return export_torch(saved, tmp_path / "bundle", TorchOptions(sizes=SIZES, export=options))
        return export_onnx(export_reference(name, reference_models), tmp_path / "bundle", options)

    return export


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("name", ["dit_tiny", "llada_tiny", "unet2d_condition_tiny", "flux"])
def test_base_and_edit_graphs_become_engines(name: str, precision: str, exported: Callable[[str, str], Bundle]) -> None:
    bundle, stacked = exported(name, precision), name in STACKED
    assert (bundle.manifest.stacked["cached"].graph is not None) == stacked
    made = build(bundle, BuildOptions(Target.TENSORRT_RTX, rows=("10%",), group_norm=("cached",), stacked=stacked))
    graphs = ["base.onnx", "edit.onnx", *(["edit_stacked.onnx"] if stacked else [])]
    assert [engine.spec.graph for engine in made if "prep" not in engine.spec.graph] == graphs
    for engine in made:
        assert engine.spec.precision == precision
        assert engine.layers is not None and engine.layers > 0
    grid = bundle.manifest.grid(bundle.manifest.editable.grid)
    for engine in made:
        for profile in engine.spec.profiles:
            assert profile.rows == max(1, round(grid.rows / 10))
            assert any(least < usual for least, usual, _ in profile.dims.values())
    assert [len(engine.spec.profiles) for engine in made if "edit" in engine.spec.graph] == [1] * (1 + stacked)
