"""States of another request: another size or batch of the same model is never served with them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from retouch import EditSession, Region
from retouch.bundle import Bundle
from retouch.errors import FeedError, RunError
from retouch.export import ExportOptions, export_onnx
from retouch.states import StateStore

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
model (float[N,2,H,W] x) => (float[N,2,H,W] y) {
    near = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w)
    y = Relu(near)
}
"""
SIZES = {"small": (1, 2, 32, 32), "large": (1, 2, 64, 64), "pair": (2, 2, 32, 32)}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """The model for every size, all with the same weights in one file."""
    folder = tmp_path_factory.mktemp("sizes")
    model = onnx.parser.parse_model(MODEL)
    weights = np.random.default_rng(0).standard_normal((2, 2, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, folder / "model.onnx")
    made: dict[str, Bundle] = {}
    for name, (batch, _, height, width) in SIZES.items():
        share = made["small"].path if made else None
        fix = {"batch": batch, "H": height, "W": width}
        options = ExportOptions(editable="x", axes=(2, 3), fix=fix, share=share)
        made[name] = export_onnx(folder / "model.onnx", folder / name, options)
    return made


def feed(name: str) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(SIZES[name]).astype(np.float32)


@pytest.mark.parametrize(("first", "second"), [("small", "large"), ("large", "small"), ("pair", "small")])
def test_a_run_serves_its_own_size_only(bundles: dict[str, Bundle], first: str, second: str) -> None:
    store = StateStore()
    with (
        EditSession(bundles[first], threads=1, store=store) as one,
        EditSession(bundles[second], threads=1, store=store) as other,
    ):
        run = one.base({"x": feed(first)})
        region = Region.from_boxes([(0, 0, 2, 2)], SIZES[second][2:])
        assert other.runs() == ()
        for asked in (run, run.id):
            with pytest.raises(RunError):
                other.edit(asked, {"x": feed(second)}, region=region)
        with pytest.raises(FeedError, match=r"Expected feed 'x' of shape .*exported for this shape"):
            one.edit(run, {"x": feed(second)}, region=Region.from_boxes([(0, 0, 2, 2)], SIZES[first][2:]))
        own = other.base({"x": feed(second)})
        edited = other.edit(own, {"x": -feed(second)}, region=region, fallback=False)
    assert edited.outputs["y"].shape == SIZES[second]
    assert (edited.outputs["y"] != own.outputs["y"]).any()
