"""Builds for TensorRT, whose builder needs a GPU and is played here: what it is asked for."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from retouch.bundle import Bundle
from retouch.errors import BuildRequestError, EngineMissingError
from retouch.export import ExportOptions, export_onnx
from retouch.trt_plugins import BuildOptions, Target, build, outdated
from tests.trt_plugins.conftest import write_model
from tests.trt_plugins.fake_builder import FakeTensorRt
from tests.trt_plugins.fake_cuda import FakeCuda, driver


@pytest.fixture
def trt(monkeypatch: pytest.MonkeyPatch) -> FakeTensorRt:
    fake = FakeTensorRt("10.14.1")
    monkeypatch.setitem(sys.modules, "tensorrt", fake)
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", FakeCuda())
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver())
    return fake


def test_engines_for_the_card_that_is_there(bundle: Bundle, trt: FakeTensorRt) -> None:
    engines = build(bundle, BuildOptions(Target.TENSORRT, version_compatible=True, rows=("all",)))
    assert trt.flags == {"VERSION_COMPATIBLE"}
    assert {engine.spec.devices for engine in engines} == {("Fake 4090",)}
    assert {engine.spec.traits for engine in engines} == {("version-compatible",)}
    assert (trt.libraries, trt.caches, trt.previews) == ([], [], set())


def test_another_card_wants_engines_of_its_own(
    bundle: Bundle, trt: FakeTensorRt, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = BuildOptions(Target.TENSORRT, rows=("all",))
    made = build(bundle, options)
    assert outdated(Bundle.open(bundle.path), options) == []
    monkeypatch.setattr(FakeCuda, "card", b"Fake 5090\0")
    assert len(outdated(Bundle.open(bundle.path), options)) == len(made)
    assert {engine.spec.devices for engine in build(bundle.path, options)} == {("Fake 5090",)}
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", None)
    with pytest.raises(EngineMissingError, match="cuda-bindings"):
        outdated(Bundle.open(bundle.path), options)


def test_the_timing_cache_goes_from_build_to_build(bundle: Bundle, trt: FakeTensorRt, tmp_path: Path) -> None:
    cache = tmp_path / "below" / "cache"
    engines = build(bundle, BuildOptions(Target.TENSORRT, timing_cache=cache, rows=("all",)))
    assert trt.caches == [b"+" * number for number in range(len(engines))]
    assert cache.read_bytes() == b"+" * len(engines)
    assert outdated(Bundle.open(bundle.path), BuildOptions(Target.TENSORRT, rows=("all",))) == []
    trt.refuses_cache = True
    with pytest.raises(BuildRequestError, match="timing cache of this TensorRT and this card"):
        build(bundle.path, BuildOptions(Target.TENSORRT, timing_cache=cache, rows=("50%",)))


def test_engines_without_weights_serve_bundles_with_others(bundle: Bundle, trt: FakeTensorRt, tmp_path: Path) -> None:
    options = BuildOptions(Target.TENSORRT, refit=True, rows=("all",))
    made = build(bundle, options)
    assert trt.flags == {"REFIT", "STRIP_PLAN"}
    assert {engine.spec.traits for engine in made} == {("refit", "stripped")}
    model = onnx.load(write_model(tmp_path))
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array * np.float32(1.5), tensor.name))
    onnx.save(model, tmp_path / "tuned.onnx")
    tuned = export_onnx(
        tmp_path / "tuned.onnx", tmp_path / "tuned", ExportOptions(editable="x", min_coverage=0.0, verify=False)
    )
    assert len(outdated(tuned, options)) == len(made)
    parsed = len(trt.parsed)
    taken = build(tuned, options, engines_from=bundle.path)
    same = Counter(engine.spec.source for engine in taken) & Counter(engine.spec.source for engine in made)
    assert sum(same.values()) == len(made)
    assert len(trt.parsed) == parsed
    assert outdated(Bundle.open(tuned.path), options) == []
    with_weights = BuildOptions(Target.TENSORRT, rows=("all",))
    assert len(outdated(Bundle.open(tuned.path), with_weights)) == len(made)


def test_a_release_that_loses_biases_is_not_used(bundle: Bundle, trt: FakeTensorRt) -> None:
    trt.__version__ = "11.3.0"
    with pytest.raises(BuildRequestError, match="other than 11.3 .*got 11.3.0"):
        build(bundle, BuildOptions(Target.TENSORRT, refit=True))


def test_tensorrt_rtx_needs_a_card_for_engines_without_weights(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    card = FakeCuda()
    monkeypatch.setattr(card, "cudaGetDeviceCount", lambda: (35, None))
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", card)
    with pytest.raises(EngineMissingError, match="NVIDIA GPU with its driver .*got: error 35"):
        build(bundle, BuildOptions(Target.TENSORRT_RTX, refit=True))


def test_plugins_that_are_not_there(bundle: Bundle, trt: FakeTensorRt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RETOUCH_TRT_PLUGINS", raising=False)
    with pytest.raises(EngineMissingError, match="RETOUCH_TRT_PLUGINS to name .*got nothing.*make plugins"):
        build(bundle, BuildOptions(Target.TENSORRT, plugins=True))
    monkeypatch.setenv("RETOUCH_TRT_PLUGINS", onnx.onnx_cpp2py_export.__file__)
    with pytest.raises(EngineMissingError, match="to be Retouch's plugin library, got: .*retouch_trt_describe"):
        build(bundle, BuildOptions(Target.TENSORRT, plugins=True))
