"""Engines for a range of batches: sessions run any of them, and say what to build for others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from retouch import EditSession
from retouch.bundle import Bundle, at_batch
from retouch.engines import Target
from retouch.engines.tensorrt import TensorRtEngine
from retouch.errors import EngineError
from retouch.trt_plugins import BatchRange, BuildOptions, build
from tests.trt_plugins import fake_runtime
from tests.trt_plugins.batches import edits, exported
from tests.trt_plugins.fake_cuda import FakeCuda
from tests.trt_plugins.runner.cases import ENGINE


@pytest.fixture(scope="module")
def of_batches(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    folder = tmp_path_factory.mktemp("batches")
    two = exported(model, folder, 2)
    batch = BatchRange(1, 4, exported(model, folder, 3, two.path).path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retouch.trt_plugins._build.compile_graph", fake_runtime.compiled)
        build(two, BuildOptions(Target.TENSORRT_RTX, rows=("16", "all"), batch=batch))
        yield Bundle.open(two.path)


@pytest.mark.parametrize("batch", [2, 3, 4])
def test_sessions_run_the_batch_that_they_are_for(
    of_batches: Bundle, card: FakeCuda, model: Path, tmp_path: Path, batch: int
) -> None:
    with EditSession(at_batch(of_batches, batch), engine=ENGINE) as session:
        got = edits(session, batch)
    with EditSession(exported(model, tmp_path, batch), ["CPUExecutionProvider"], threads=1) as session:
        expected = edits(session, batch)
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() <= 2e-6 * np.abs(other).max()


def test_a_batch_outside_of_the_range_says_what_to_build(of_batches: Bundle, card: FakeCuda) -> None:
    engine = TensorRtEngine(of_batches, Target.TENSORRT_RTX)
    base = engine.open(of_batches.path / "base.onnx", ("y",))

    def feeds(batch: int) -> dict[str, np.ndarray]:
        return {"x": np.ones((batch, 4, 16, 16), np.float32), "step": np.ones(1, np.float32)}

    fitting, larger = ({name: engine.value(feed) for name, feed in feeds(batch).items()} for batch in (4, 5))
    assert base.refusal(fitting) is None
    assert base.run(fitting)["y"].shape == (4, 4, 16, 16)
    assert base.refusal(larger) is not None
    with pytest.raises(EngineError, match=r"x \[5, 4, 16, 16\] not within .*--profile batch=LEAST\.\.MOST"):
        base.run(larger)
