"""The first value that is not finite is named, with its node and what the node read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from retouch.bundle import Bundle
from retouch.cli import app
from retouch.diagnose import first_non_finite
from retouch.export import ExportOptions, export_onnx

# The overflow starts in the middle; what comes after is not finite either. 70 operators before it fill a group.
MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
image (float[1,2,4,4] x) => (float[1,2,4,4] y) <float big = {1e30}> {
    CHAIN
    [scaled] large = Mul(CHAINED, big)
    [squared] burst = Mul(large, large)
    [after] z = Tanh(burst)
    [last] y = Mul(z, burst)
}
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("overflow")
    chain = "\n".join(f"c{i + 1} = Abs({f'c{i}' if i else 'x'})\n" for i in range(70))
    text = MODEL.replace("CHAINED", "c70").replace("CHAIN", chain)
    onnx.save(onnx.parser.parse_model(text), folder / "model.onnx")
    return export_onnx(folder / "model.onnx", folder / "bundle", ExportOptions(verify=False))


def test_the_node_where_it_starts_is_named(bundle: Bundle) -> None:
    shares: list[float] = []
    x = np.full((1, 2, 4, 4), 3.0, np.float32)
    x[0, 0, 0, 0] = 0.0
    found = first_non_finite(bundle, {"x": x}, threads=1, progress=shares.append)
    assert found is not None
    assert (found.value, found.node, found.op) == ("burst", "squared", "Mul")
    assert (found.nan, found.infinite, found.size) == (0, 31, 32)
    assert found.reads["large"] == pytest.approx((0.0, 3e30))
    assert shares and shares[-1] < 1


def test_nothing_is_found_in_a_run_that_is_finite(bundle: Bundle) -> None:
    assert first_non_finite(bundle, {"x": np.zeros((1, 2, 4, 4), np.float32)}, threads=1) is None


def test_a_feed_that_is_not_finite_is_named(bundle: Bundle) -> None:
    x = np.zeros((1, 2, 4, 4), np.float32)
    x[0, 0, 0, 0] = np.nan
    found = first_non_finite(bundle, {"x": x}, threads=1)
    assert found is not None
    assert (found.value, found.node, found.nan) == ("x", "", 1)


def test_command_line(bundle: Bundle, tmp_path: Path) -> None:
    runner = CliRunner()
    traced = runner.invoke(app, ["doctor", "--trace-nan", str(bundle.path), "-i", "x=3"])
    assert traced.exit_code == 1
    assert "Mul node 'squared' computes 'burst'" in " ".join(traced.output.split())
    report = tmp_path / "trace.json"
    fine = runner.invoke(app, ["doctor", "--trace-nan", str(bundle.path), "-i", "x=0", "--json", str(report)])
    assert fine.exit_code == 0, fine.output
    assert '"found": null' in report.read_text()
