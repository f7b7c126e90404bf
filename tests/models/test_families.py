"""Every family from a saved model to an edit that gives what the torch model gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retouch import EditSession, Region
from retouch.export import ExportOptions
from retouch.models import Sizes, TorchOptions, adapter_for, export_torch
from retouch.models._arguments import nested
from retouch.models._torch_onnx import config_of

TEXT = Sizes(text=5)
LATENTS = Sizes(text=5, height=8, width=8)
CASES: dict[str, tuple[str, TorchOptions]] = {
    "ddpm": ("ddpm", TorchOptions()),
    "sd15": ("sd15", TorchOptions(sizes=TEXT)),
    "sd21": ("sd21", TorchOptions(sizes=TEXT)),
    "inpainting": ("inpainting", TorchOptions(sizes=TEXT)),
    "sdxl": ("sdxl", TorchOptions(sizes=Sizes(text=5, batch=2))),
    "controlnet": ("brief", TorchOptions(sizes=TEXT, part="controlled")),
    "controlnet_residuals": ("controlnet", TorchOptions(sizes=LATENTS)),
    "controlnet_image": ("controlnet", TorchOptions(sizes=LATENTS, export=ExportOptions(editable="controlnet_cond"))),
    "vae_encoder": ("autoencoder", TorchOptions(part="encoder")),
    "vae_decoder": ("autoencoder", TorchOptions(part="decoder")),
    "dit": ("dit", TorchOptions()),
    "pixart": ("pixart", TorchOptions(sizes=TEXT)),
    "pixart_sized": ("pixart_sized", TorchOptions(sizes=TEXT)),
    "sana": ("sana", TorchOptions(sizes=TEXT)),
    "bert": ("bert", TorchOptions()),
    "roberta": ("roberta", TorchOptions()),
    "sd3": ("sd3", TorchOptions(sizes=TEXT)),
    "sd35": ("sd35", TorchOptions(sizes=TEXT)),
    "flux": ("flux", TorchOptions(sizes=Sizes(text=5, height=8, width=8))),
}


ALONE = {"sd3": "computes anew", "sd35": "computes anew", "flux": "computes anew", "sana": "sums over the rows"}
"""Models without a stacked graph, and what every edit has to itself: its text, or sums over all tokens."""


def called(model: Any, options: TorchOptions, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the torch model gives, called the way the adapter says."""
    import torch

    kind = f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}"
    adapter = adapter_for(kind, options.part)
    names = {item.name: item.argument or item.name for item in adapter.inputs(config_of(model), options.sizes)}
    tensors = {names[name]: torch.from_numpy(feed) for name, feed in feeds.items()}
    with torch.no_grad():
        outputs = adapter.call(model, **nested({**adapter.arguments, **tensors}))
    return {name: tensor.numpy() for name, tensor in outputs.items()}


@pytest.mark.parametrize("case", CASES)
def test_family(case: str, tiny: Any, tmp_path: Path) -> None:
    name, options = CASES[case]
    model = tiny(name)
    # The export reads what was saved, out of a folder whose name no shell likes.
    folder = tmp_path / "modèle n° 1"
    model.save_pretrained(folder)
    bundle = export_torch(folder, tmp_path / "bundle ü", options)
    manifest = bundle.manifest
    assert covered(manifest) >= 0.99
    assert max(manifest.verification.values()) <= 2e-5
    assert (case in ALONE) == (manifest.stacked["cached"].graph is None)
    assert ALONE.get(case, "") in (manifest.stacked["cached"].reason or "")

    generator = np.random.default_rng(0)
    feeds, changed = ({**made(manifest, generator)} for _ in range(2))
    editable = manifest.editable.input
    changed = {**feeds, editable: changed[editable]}
    dims = manifest.grid(manifest.editable.grid).dims
    with EditSession(bundle, threads=1, group_norm="corrected") as session:
        base = session.base(feeds)
        everywhere = session.edit(base, {editable: changed[editable]}, region=Region.full(dims), fallback=False)
        here = session.edit(base, {editable: changed[editable]}, region=Region.from_rows([1], dims), fallback=False)
    for output, expected in called(model, options, feeds).items():
        assert_close(base.outputs[output], expected)
    for output, expected in called(model, options, changed).items():
        assert_close(everywhere.outputs[output], expected)
        assert (here.outputs[output] != base.outputs[output]).any()
    assert here.report.path == "edit"


def covered(manifest: Any) -> float:
    """Share of the FLOPs that are not dense, text that is recomputed on purpose left out."""
    flops = {row.plan: 0 for row in manifest.plan}
    for row in manifest.plan:
        flops[row.plan] += row.flops
    recomputed = flops.pop("recomputed", 0)
    assert manifest.coverage == pytest.approx(1 - (flops.get("densified", 0) + recomputed) / manifest.flops)
    return 1 - flops.get("densified", 0) / sum(flops.values())


def made(manifest: Any, generator: np.random.Generator) -> dict[str, np.ndarray]:
    feeds = {}
    for spec in manifest.inputs:
        if spec.name in ("attention_mask", "encoder_attention_mask"):
            feeds[spec.name] = np.ones(spec.shape, spec.dtype)
        elif "int" in spec.dtype:
            feeds[spec.name] = generator.integers(0, 10, spec.shape).astype(spec.dtype)
        else:
            feeds[spec.name] = generator.standard_normal(spec.shape).astype(spec.dtype)
    return feeds


def assert_close(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max()
