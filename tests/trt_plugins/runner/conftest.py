"""A small UNet with engines, the card that runs them, and ONNX Runtime beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from retouch import EditSession
from retouch.bundle import Bundle
from retouch.engines import Target
from retouch.export import ExportOptions, export_onnx
from retouch.trt_plugins import BuildOptions, build
from tests.trt_plugins import fake_runtime
from tests.trt_plugins.fake_cuda import FakeCuda
from tests.trt_plugins.runner.cases import installed


@pytest.fixture(scope="module")
def built(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    """The small UNet with engines for 16 rows and for all 256."""
    options = ExportOptions(editable="x", min_coverage=0.0, verify=False)
    bundle = export_onnx(model, tmp_path_factory.mktemp("runner") / "bundle", options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retouch.trt_plugins._build.compile_graph", fake_runtime.compiled)
        build(bundle, BuildOptions(Target.TENSORRT_RTX, rows=("16", "100")))
        yield Bundle.open(bundle.path)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    return installed(monkeypatch, FakeCuda())


@pytest.fixture(scope="module")
def stock(built: Bundle) -> Iterator[EditSession]:
    with EditSession(built, ["CPUExecutionProvider"], threads=1) as session:
        yield session
