"""One model out of different exporters: the plan is the same, and so is what the base graph computes."""

from __future__ import annotations

from functools import cache as cached
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from retouch.export import ExportOptions, export_onnx
from retouch.validation.reference_models import export_reference, load_feeds
from tests.plan_shares import shares

pytest.importorskip("diffusers")

MODELS = ["ddpm_unet_tiny", "dit_tiny", "llada_tiny", "unet2d_condition_tiny"]
VARIANTS = {
    "opset_23": {"opset": 23},
    "torchscript": {"torchscript": True},
    "dynamic_batch": {"dynamic_batch": True},
    "torchscript_dynamic_batch": {"torchscript": True, "dynamic_batch": True},
}
CASES = [(variant, 1) for variant in VARIANTS] + [(variant, 2) for variant in VARIANTS if "batch" in variant]


@cached
def usual_shares(name: str, reference_models: Path, folder: Path) -> dict[str, float]:
    bundle = export_onnx(
        export_reference(name, reference_models), folder / f"{name}.usual", ExportOptions(verify=False)
    )
    return shares(bundle)


def repeated(feeds: dict[str, np.ndarray], batch: int) -> dict[str, np.ndarray]:
    """Different feeds for every element of a batch."""
    return {name: np.concatenate([np.roll(feed, i, -1) for i in range(batch)]) for name, feed in feeds.items()}


@pytest.mark.parametrize(("variant", "batch"), CASES)
@pytest.mark.parametrize("name", MODELS)
def test_plan_is_that_of_the_usual_export(
    name: str,
    variant: str,
    batch: int,
    reference_models: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    model = export_reference(name, reference_models, **VARIANTS[variant])
    fix = {"batch": batch} if "batch" in variant else {}
    bundle = export_onnx(model, tmp_path / "bundle", ExportOptions(fix=fix))
    assert bundle.manifest.coverage >= 0.99
    assert bundle.manifest.inputs[0].shape[0] == batch
    assert shares(bundle) == pytest.approx(
        usual_shares(name, reference_models, tmp_path_factory.getbasetemp()), abs=0.01
    )

    feeds = repeated(load_feeds(model), batch)
    expected, got = (
        onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"]).run(["out"], feeds)[0]
        for graph in (model, bundle.path / bundle.manifest.base_file)
    )
    assert np.abs(got - expected).max() <= 2e-5 * np.abs(expected).max()
    if batch > 1:
        assert np.abs(got[0] - got[1]).max() > 1e-3
