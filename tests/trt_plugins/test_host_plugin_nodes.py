"""Edit graphs whose operators became plugins' nodes compute what they computed before, by the kernels on the host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from retouch import EditSession, Region
from retouch.bundle import Bundle
from retouch.engines.ort import _program
from retouch.export import ExportOptions, export_onnx
from retouch.trt_plugins._plugin_nodes import DOMAIN, with_plugins
from retouch.validation.reference_models import export_reference
from tests.trt_plugins.host_kernels import HostKernels
from tests.trt_plugins.plugin_operators import operators

EXPECTED = {
    ("ddpm_unet_tiny", "cached"): {"EditConv", "RowLinear", "EditAttention"},
    ("ddpm_unet_tiny", "corrected"): {"EditConv", "RowLinear", "EditAttention", "EditGroupNorm"},
    ("dit_tiny", "cached"): {"RowLinear", "EditAttention"},
}


@pytest.fixture(scope="module")
def bundles(reference_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Bundle]:
    folder = tmp_path_factory.mktemp("plugin_nodes")
    names = sorted({name for name, _ in EXPECTED})
    return {
        name: export_onnx(export_reference(name, reference_models), folder / name, ExportOptions(verify=False))
        for name in names
    }


def edit(bundle: Bundle, mode: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """What the edit graph is fed for a small region, and the result on stock kernels."""
    fed: dict[str, np.ndarray] = {}
    bind = _program.OrtBinding._bind

    def bound(self: Any, inputs: Mapping[str, Any]) -> None:
        fed.update({name: value.numpy() for name, value in inputs.items()})
        bind(self, inputs)

    generator = np.random.default_rng(0)
    feeds = {
        spec.name: generator.standard_normal(spec.shape).astype(spec.dtype)
        if spec.dtype.startswith("float")
        else np.ones(spec.shape, spec.dtype)
        for spec in bundle.manifest.inputs
    }
    editable = bundle.manifest.editable
    shape = bundle.manifest.grid(editable.grid).dims
    mask = np.zeros(shape, bool)
    mask[tuple(slice(size // 4, size // 4 + 2) for size in shape)] = True
    with EditSession(bundle, ["CPUExecutionProvider"], threads=1, group_norm=mode) as session:
        base = session.base(feeds)
        monkeypatch.setattr(_program.OrtBinding, "_bind", bound)
        changed = {editable.input: feeds[editable.input] + np.float32(1)}
        result = session.edit(base, changed, region=Region.from_mask(mask, "exact"), fallback=False)
        monkeypatch.undo()
    return fed, next(iter(result.outputs.values()))


@pytest.mark.parametrize(("name", "mode"), EXPECTED)
def test_plugins_compute_what_function_bodies_compute(
    name: str, mode: str, bundles: Mapping[str, Bundle], kernels: HostKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = bundles[name]
    fed, expected = edit(bundle, mode, monkeypatch)
    spec = bundle.manifest.edits[mode]
    model = onnx.load(bundle.path / spec.file)
    found = with_plugins(model)
    assert EXPECTED[name, mode] <= set(found.plugins)
    assert all(op.startswith("Rows") for op in found.bodies), found.bodies
    assert {function.name for function in model.functions if function.domain == DOMAIN} == set(found.bodies)
    evaluator = ReferenceEvaluator(model, new_ops=operators(kernels))
    own = bundle.manifest.outputs[0].tensor.name
    (got,) = evaluator.run([own], {name: fed[name] for name in evaluator.input_names})
    assert np.abs(got - expected).max() <= 2e-5 * np.abs(expected).max()
    assert not np.array_equal(got, fed[bundle.manifest.editable.input])


def test_numbers_that_a_graph_computes_keep_the_body() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 18, "ai.retouch" : 1]>
        g (float[2,4] q, float[1,4] k, float[3,1,4] ck, int64[1,1] i, float s) => (float[2,4] y, float[2,4] z) {
            y = ai.retouch.EditAttention(q, k, k, ck, ck, i, s)
            c = Constant<value = float {0.5}>()
            z = ai.retouch.EditAttention(q, k, k, ck, ck, i, c)
        }
        <domain: "ai.retouch", opset_import: ["" : 18]>
        EditAttention (a, b, c, d, e, f, g) => (y) { y = Identity(a) }""")
    found = with_plugins(model)
    assert (found.plugins, found.bodies) == ({"EditAttention": 1}, {"EditAttention": 1})
    body, plugin, _ = sorted(model.graph.node, key=lambda node: node.op_type != "EditAttention")
    assert not body.attribute and len(body.input) == 7
    values = {attribute.name: attribute.f or attribute.s.decode() for attribute in plugin.attribute}
    assert values == {"scale": 0.5, "plugin_namespace": DOMAIN, "plugin_version": "3"}
    assert len(plugin.input) == 6 and len(model.functions) == 1
