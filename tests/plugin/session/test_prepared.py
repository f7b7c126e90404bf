"""What depends on conditions is computed once per condition, and never taken for another one's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from retouch import EditSession, Region
from retouch.bundle import Bundle, prepared_groups
from retouch.engines.ort import OrtEngine
from retouch.export import ExportOptions, export_onnx
from retouch.session._prepared import PreparedCache

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
attending (float[1,16,8] x, float[1,8] time, float[1,5,8] text) => (float[1,16,8] y) <int64[1] one = {1}> {
    embedded = MatMul(time, w_time)
    offset = Unsqueeze(embedded, one)
    projected = MatMul(x, w_x)
    hidden = Add(projected, offset)
    keys = MatMul(text, w_k)
    turned = Transpose<perm = [0, 2, 1]>(keys)
    values = MatMul(text, w_v)
    scores = MatMul(hidden, turned)
    weights = Softmax(scores)
    attended = MatMul(weights, values)
    pooled = ReduceMean<keepdims = 1>(text, one)
    both = Mul(pooled, offset)
    gate = Sigmoid(both)
    gated = Mul(attended, gate)
    y = Add(hidden, gated)
}
"""
REGION = Region.from_spans([(3, 6)], 16)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = onnx.parser.parse_model(MODEL)
    generator = np.random.default_rng(0)
    for name in ("w_time", "w_x", "w_k", "w_v"):
        weights = generator.standard_normal((8, 8), dtype=np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    path = tmp_path_factory.mktemp("attending") / "model.onnx"
    onnx.save(made, path)
    return path


@pytest.fixture(scope="module")
def bundle(model: Path) -> Bundle:
    return export_onnx(model, model.parent / "bundle", ExportOptions(editable="x", axes=(1,)))


def feeds(seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    shapes = {"x": (1, 16, 8), "time": (1, 8), "text": (1, 5, 8)}
    return {name: generator.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def expected(model: Path, base: dict[str, np.ndarray], changed: dict[str, np.ndarray]) -> np.ndarray:
    """Rows of this model do not see one another: a full run has the edited ones, the base run the others."""
    stock = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    old, new = (stock.run(None, given)[0] for given in (base, {**base, **changed}))
    return np.where(REGION.mask[None, :, None], new, old)


def test_groups_are_what_conditions_say(bundle: Bundle) -> None:
    spec = bundle.manifest.edits["cached"]
    assert spec.prep_file is not None
    groups = prepared_groups(bundle.path / spec.prep_file)
    assert {group.name for group in groups} == {"time", "text", "time + text"}
    assert sorted(name for group in groups for name in group.outputs) == sorted(t.name for t in spec.prepared)


def test_a_condition_that_changes_invalidates_what_depends_on_it(bundle: Bundle, model: Path) -> None:
    base, other = feeds(0), feeds(1)
    with EditSession(bundle, threads=1) as session:
        run = session.base(base)

        def sources(change: dict[str, np.ndarray]) -> dict[str, str]:
            result = session.edit(run, change, region=REGION, fallback=False)
            np.testing.assert_allclose(result.outputs["y"], expected(model, base, change), atol=2e-5)
            return {name: source[0] for name, source in result.report.prepared_by.items()}

        text, time = {"text": other["text"]}, {"time": other["time"]}
        assert sources({}) == {"time": "c", "text": "c", "time + text": "c"}
        assert sources({"x": other["x"]}) == {"time": "r", "text": "r", "time + text": "r"}
        assert sources(text) == {"time": "r", "text": "c", "time + text": "c"}
        assert sources(time) == {"time": "c", "text": "r", "time + text": "c"}
        assert sources(text | time) == {"time": "r", "text": "r", "time + text": "c"}
        assert sources({"text": other["text"].copy()}) == {"time": "r", "text": "r", "time + text": "r"}


def test_only_what_is_stale_is_computed(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, ...]] = []
    load = OrtEngine.open

    def spy(self: OrtEngine, graph: Path, outputs: Any = None) -> Any:
        program = load(self, graph, outputs)
        if not graph.name.startswith("prep"):
            return program
        run = program.run
        program.run = lambda inputs: opened.append(tuple(sorted(program.inputs))) or run(inputs)  # type: ignore[method-assign]
        return program

    monkeypatch.setattr(OrtEngine, "open", spy)
    with EditSession(bundle, threads=1) as session:
        first, second = session.base(feeds(0)), session.base({**feeds(2), "text": feeds(0)["text"]})
        session.edit(first, region=REGION)
        assert sorted(opened) == [("text",), ("text", "time"), ("time",)]
        opened.clear()
        session.edit(second, region=REGION)  # the next step of a loop: another time, the same text
        assert sorted(opened) == [("text", "time"), ("time",)]


def test_an_array_that_the_caller_changes_in_place(bundle: Bundle, model: Path) -> None:
    base = feeds(0)
    text = base["text"].copy()
    with EditSession(bundle, threads=1) as session:
        run = session.base(base)
        for step in range(3):
            text[0, step] += 1.0
            result = session.edit(run, {"text": text}, region=REGION)
            assert result.report.prepared_by["text"] == "computed"
            np.testing.assert_allclose(result.outputs["y"], expected(model, base, {"text": text}), atol=2e-5)
        base["text"][:] = 7.0
        again = session.edit(run, region=REGION)
        # Inside the region the edit's own kernels round on their own.
        np.testing.assert_allclose(again.outputs["y"], run.outputs["y"], atol=2e-5)


def test_the_report_says_which(bundle: Bundle) -> None:
    with EditSession(bundle, threads=1) as session:
        run = session.base(feeds(0))
        session.edit(run, region=REGION)
        report = session.edit(run, {"text": feeds(1)["text"]}, region=REGION).report
    assert report.prepared == "partly"
    assert "partly (time: reused, text: computed, time + text: computed)" in str(report)


def test_the_cache_keeps_what_was_used_last() -> None:
    def values(size: int) -> dict[str, Any]:
        return {"v": OrtEngine().value(np.zeros(size, np.uint8))}

    cache = PreparedCache(budget=100)
    for name in "abc":
        cache.keep(name, values(40))
        assert cache.find("a") is not None or name == "c"
    assert [cache.find(name) is not None for name in "abc"] == [True, False, True]
    cache.keep("large", values(1000))
    assert cache.find("large") is not None and cache.find("a") is None
