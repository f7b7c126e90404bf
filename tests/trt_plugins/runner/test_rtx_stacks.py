"""Several edits of one base run in one run of an engine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from retouch import EditSession, Region
from retouch.bundle import Bundle
from retouch.engines import Target
from retouch.export import ExportOptions, export_onnx
from retouch.session import EditRequest
from retouch.trt_plugins import BuildOptions, build
from tests.trt_plugins import fake_runtime
from tests.trt_plugins.fake_cuda import FakeCuda
from tests.trt_plugins.runner.cases import ENGINE, FEEDS, OTHER


@pytest.fixture(scope="module")
def stacking(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    """The small UNet with engines for 12 rows, together as well."""
    options = ExportOptions(editable="x", min_coverage=0.0, verify=False)
    bundle = export_onnx(model, tmp_path_factory.mktemp("stacks") / "bundle", options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retouch.trt_plugins._build.compile_graph", fake_runtime.compiled)
        patch.delitem(sys.modules, "tensorrt_rtx", raising=False)
        build(bundle, BuildOptions(Target.TENSORRT_RTX, rows=("12",), stacked=True))
    return Bundle.open(bundle.path)


def requests(count: int, side: int) -> list[EditRequest]:
    """Edits of squares in different places."""
    places = [(1, 1), (9, 9), (2, 10), (10, 2), (5, 5)]
    return [
        EditRequest(
            Region.from_boxes([(y, x, y + side, x + side)], shape=(16, 16), policy="exact"), {"x": OTHER * (number + 1)}
        )
        for number, (y, x) in enumerate(places[:count])
    ]


def test_edits_share_a_run(stacking: Bundle, card: FakeCuda) -> None:
    edits = requests(3, 2)
    with (
        EditSession(stacking, engine=ENGINE) as session,
        EditSession(stacking, ["CPUExecutionProvider"], threads=1) as stock,
    ):
        run, theirs = session.base(FEEDS), stock.base(FEEDS)
        card.calls.clear()
        got, expected = session.edit_many(run, edits), stock.edit_many(theirs, edits)
        assert [result.report.stacked for result in got] == [result.report.stacked for result in expected] == [3] * 3
        for one, other in zip(got, expected, strict=True):
            assert one.outputs["y"].tobytes() == other.outputs["y"].tobytes()
            assert "profile 1 of 1, made for 12 rows" in one.report.notes
        assert card.names().count("execute_async_v3") <= 2  # prepared inputs, and the stack
        again = session.edit_many(run, edits)
        assert "launched as a captured graph" in again[0].report.notes
        assert again[2].outputs["y"].tobytes() == expected[2].outputs["y"].tobytes()


def test_edits_that_are_too_large_together_run_one_by_one(stacking: Bundle, card: FakeCuda) -> None:
    with EditSession(stacking, engine=ENGINE) as session:
        run = session.base(FEEDS)
        results = session.edit_many(run, requests(5, 2))
        assert [result.report.stacked for result in results] == [1] * 5
        for result in results:
            assert result.report.path == "edit"
            assert "on its own: no profile of the engine (made for 12 rows) takes the region" in result.report.reason
