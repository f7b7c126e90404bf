"""Models that ONNX Runtime's optimisers have been over give the same plans, and compute what they computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model

from retouch.bundle import Bundle
from retouch.calibrate import sample_feeds
from retouch.export import ExportOptions, export_onnx
from retouch.session import EditSession
from retouch.validation.reference_models import export_reference

MODELS = ["ddpm_unet_tiny", "dit_tiny", "llada_tiny", "unet2d_condition_tiny"]


def _optimised(source: Path, target: Path) -> Path:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    return target


def _fused(source: Path, target: Path) -> Path:
    """What the offline optimiser for transformers makes of a model: more is fused, some of it for GPUs only."""
    kind = "unet" if "unet" in source.stem else "bert"
    options = FusionOptions(kind)
    # This fusion raises an IndexError at layer norms without bias, which DiT has.
    options.enable_skip_layer_norm = "dit" not in source.stem
    optimised = optimize_model(str(source), model_type=kind, optimization_options=options, opt_level=0, use_gpu=False)
    optimised.save_model_to_file(str(target))
    return target


OPTIMISERS = {"session": _optimised, "transformers": _fused}


def _shares(bundle: Bundle) -> dict[str, float]:
    manifest = bundle.manifest
    plans = {row.plan for row in manifest.plan}
    return {plan: sum(row.flops for row in manifest.plan if row.plan == plan) / manifest.flops for plan in plans}


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("name", MODELS)
def test_an_optimised_model_gives_the_plan_of_the_original(
    name: str, optimiser: str, tmp_path: Path, reference_models: Path
) -> None:
    source = export_reference(name, reference_models)
    optimised = OPTIMISERS[optimiser](source, tmp_path / "optimised.onnx")
    assert {node.domain for node in onnx.load(optimised).graph.node} & {"com.microsoft"}
    bundle = export_onnx(optimised, tmp_path / "bundle")
    original = export_onnx(source, tmp_path / "original", ExportOptions(verify=False))
    shares, expected = _shares(bundle), _shares(original)
    for plan in ("incremental", "hoisted", "densified"):
        assert shares.get(plan, 0.0) == pytest.approx(expected.get(plan, 0.0), abs=0.01), plan
    feeds = sample_feeds(bundle.manifest)
    stock = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    with EditSession(bundle, threads=1) as session:
        outputs = session.base(feeds, record=False).outputs
    for output, expected_output in zip(bundle.manifest.outputs, stock.run(None, feeds), strict=True):
        scale = float(np.abs(expected_output).max())
        np.testing.assert_allclose(outputs[output.tensor.name], expected_output, atol=1e-5 * scale)
