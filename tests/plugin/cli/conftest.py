"""The command line in this process, and an image model small enough to export in a moment."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from retouch.cli import app

IMAGE_MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
image (float[1,3,16,16] x, int64[1] step) => (float[1,3,16,16] y) {
    number = Cast<to = 1>(step)
    a = Conv<pads = [1, 1, 1, 1]>(x, first)
    b = Mul(a, number)
    c = Sigmoid(b)
    y = Conv<pads = [1, 1, 1, 1]>(c, second)
}
"""


@dataclass(frozen=True)
class Called:
    """What a call of the command line left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def error(self) -> str:
        """The message, with line breaks as spaces: the terminal's width is not what is tested."""
        return " ".join(self.stderr.split())


Call = Callable[..., Called]


@pytest.fixture(scope="session")
def call() -> Call:
    def call(*arguments: object) -> Called:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        # A traceback would be an exception other than the one that carries the exit code.
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Called(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture(scope="session")
def image_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = onnx.parser.parse_model(IMAGE_MODEL)
    generator = np.random.default_rng(0)
    for name, shape in (("first", (8, 3, 3, 3)), ("second", (3, 8, 3, 3))):
        weights = generator.standard_normal(shape, dtype=np.float32) / 4
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    path = tmp_path_factory.mktemp("image") / "image.onnx"
    onnx.save(model, path)
    return path


@pytest.fixture(scope="session")
def image_bundle(image_model: Path, call: Call) -> Path:
    bundle = image_model.parent / "bundle"
    assert call("export", image_model, "-o", bundle, "--input", "x", "--no-calibrate").code == 0
    return bundle
