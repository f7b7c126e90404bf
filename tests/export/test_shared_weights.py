"""A second size of a model reads the weights of the first one's bundle."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from retouch import EditSession, FeedError, Region
from retouch.bundle import Bundle, read_shared
from retouch.errors import BundleError, ExportError
from retouch.export import ExportOptions, export_onnx
from retouch.export.model_file import read_model

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
model (float[1,3,h,w] x, float[1,16] c) => (float[1,3,h,w] y) <int64[4] channels = {1, 16, 1, 1}> {
    a = Conv<pads = [1, 1, 1, 1]>(x, first)
    d = MatMul(c, mixing)
    e = Reshape(d, channels)
    b = Add(a, e)
    g = Sigmoid(b)
    y = Conv<pads = [1, 1, 1, 1]>(g, last)
}
"""
SHAPES = {"first": (16, 3, 3, 3), "mixing": (16, 16), "last": (3, 16, 3, 3)}


def exported(model: Path, output: Path, size: int, share: Path | None = None) -> Bundle:
    return export_onnx(model, output, ExportOptions(editable="x", fix={"h": size, "w": 8}, share=share))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = onnx.parser.parse_model(MODEL)
    generator = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        weights = generator.standard_normal(shape, dtype=np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    onnx.save(made, path)
    return path


@pytest.fixture
def pair(model: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A bundle that nobody may write to, and one of another size that shares its weights."""
    folder = tmp_path / "pair"
    first = exported(model, folder / "small", 8)
    for path in (*first.path.iterdir(), first.path):
        path.chmod(0o555 if path.is_dir() else 0o444)
    second = exported(model, folder / "deeper" / "large", 16, first.path)
    return first.path, second.path


def feeds(size: int, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    shapes = {"x": (1, 3, size, 8), "c": (1, 16)}
    return {name: generator.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def outputs(bundle: Path) -> list[np.ndarray]:
    with EditSession(bundle, threads=1) as session:
        run = session.base(feeds(16))
        result = session.edit(run, feeds(16, 1), region=Region.from_boxes([(2, 2, 5, 5)], (16, 8)))
    return [run.outputs["y"], result.outputs["y"]]


def test_the_second_bundle_gives_what_it_would_give_alone(model: Path, pair: tuple[Path, Path], tmp_path: Path) -> None:
    alone = exported(model, tmp_path / "alone", 16)
    for got, expected in zip(outputs(pair[1]), outputs(alone.path), strict=True):
        assert np.array_equal(got, expected)
    own, whole = Bundle.open(pair[1]).file("own.bin"), alone.file("weights.bin")
    assert own.stat().st_size == 0 < whole.stat().st_size
    shared = read_shared(pair[1])
    assert shared is not None and shared.path == "../../small/weights.bin"


def test_both_move_together(pair: tuple[Path, Path], tmp_path: Path) -> None:
    before = outputs(pair[1])
    (tmp_path / "pair").rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "copied")
    for place in ("moved", "copied"):
        for got, expected in zip(outputs(tmp_path / place / "deeper" / "large"), before, strict=True):
            assert np.array_equal(got, expected)


def test_a_partner_that_is_gone_or_was_changed(pair: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(pair[1], tmp_path / "elsewhere" / "large")
    with pytest.raises(
        BundleError, match=r"shares the weights of another one, in .*weights\.bin, which is gone.*together"
    ):
        EditSession(tmp_path / "elsewhere" / "large").open()
    weights = pair[0] / "weights.bin"
    weights.chmod(0o644)
    data = bytearray(weights.read_bytes())
    data[0] ^= 1
    weights.write_bytes(data)
    with pytest.raises(BundleError, match=r"weights\.bin to have the SHA-256"):
        Bundle.open(pair[1])


def test_its_graphs_can_be_read(pair: tuple[Path, Path]) -> None:
    graph = read_model(pair[1] / "base.onnx").graph
    read = {name: graph.initializers[name].const_value for name in ("first", "last")}
    generator = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        weights = generator.standard_normal(shape, dtype=np.float32)
        assert name not in read or np.array_equal(read[name].numpy(), weights)


def test_bundles_that_cannot_be_shared(model: Path, pair: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"shares those of .*small\. Share that one"):
        exported(model, tmp_path / "third", 24, pair[1])
    with pytest.raises(ExportError, match="which this export replaces"):
        exported(model, pair[0], 8, pair[0])
    with pytest.raises(BundleError, match="is not a bundle"):
        exported(model, tmp_path / "third", 24, tmp_path)
    assert not (tmp_path / "third").exists()


def test_feeds_of_another_size_name_the_bundle_s(pair: tuple[Path, Path]) -> None:
    with EditSession(pair[0], threads=1) as session:
        with pytest.raises(FeedError, match=r"'x' of shape \(1, 3, 8, 8\), got \(1, 3, 16, 8\).*--share"):
            session.base(feeds(16))
        run = session.base(feeds(8))
        with pytest.raises(FeedError, match=r"'x' of shape \(1, 3, 8, 8\), got \(1, 3, 16, 8\)"):
            session.edit(run, {"x": feeds(16)["x"]}, region=Region.full((8, 8)))
