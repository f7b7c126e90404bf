"""What the tests of the runner edit, and the card that is played for them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from retouch import Region
from tests.trt_plugins import fake_runtime
from tests.trt_plugins.fake_cuda import FakeCuda, driver

ENGINE = "tensorrt-rtx"
SMALL = Region.from_boxes([(3, 3, 6, 6)], shape=(16, 16), policy="exact")
MEDIUM = Region.from_boxes([(3, 3, 11, 11)], shape=(16, 16), policy="exact")
LARGE = Region.from_boxes([(0, 0, 12, 12)], shape=(16, 16), policy="exact")
GENERATOR = np.random.default_rng(3)
X = GENERATOR.standard_normal((1, 4, 16, 16), dtype=np.float32)
OTHER = X + GENERATOR.standard_normal(X.shape, dtype=np.float32)
STEP = np.full(1, 0.5, np.float32)
FEEDS = {"x": X, "step": STEP}


def installed(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda, aliases: dict[str, str] | None = None) -> FakeCuda:
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", cuda)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver())
    monkeypatch.setitem(sys.modules, "tensorrt_rtx", fake_runtime.library(cuda, aliases))
    monkeypatch.setattr("retouch.engines.tensorrt._cuda.Cuda.memory_kind", 1)  # its memory is the host's
    return cuda
