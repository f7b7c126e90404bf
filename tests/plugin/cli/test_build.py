"""``retouch build``: what it refuses, and build files. Tests of the TensorRT part build engines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

from retouch.bundle import Bundle
from retouch.files import exclusive

RECIPE = """
bundle = "made/image.bundle"

[model]
source = "image.onnx"
input = "x"
min_coverage = 0.5
"""


@pytest.fixture
def recipe(image_model: Path, tmp_path: Path) -> Path:
    """A build file that only exports."""
    (tmp_path / "image.onnx").write_bytes(image_model.read_bytes())
    (tmp_path / "retouch.toml").write_text(RECIPE)
    return tmp_path / "retouch.toml"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "openvino"], "Expected --engine to be one of tensorrt-rtx, tensorrt, ort, got 'openvino'"),
        (["--precision", "int8"], "Expected --precision to be one of float32, tf32, float16, bfloat16, got 'int8'"),
        (["--profile", "2%"], "Expected --profile rows=2%,10%,all or --profile batch=2..8, got '2%'"),
        (["--profile", "batch=2..8"], "got 2..8 and no bundle. Give both"),
        (["--other-batch", "b"], "got no range and b. Give both"),
        (["--profile", "batch=2-8", "--other-batch", "b"], "Expected one range of batches like 2..8"),
        (["--profile", "batch=8..2", "--other-batch", "b"], "Expected a range of batches like 2..8, got 8..2"),
        (["--output", "elsewhere"], "--output is for build files"),
        (["--engine", "tensorrt", "--device", "8.9"], "no compute capabilities for tensorrt"),
    ],
)
def test_requests_that_cannot_be_carried_out(call: Any, image_bundle: Path, options: list[str], message: str) -> None:
    called = call("build", image_bundle, *options)
    assert called.code == 2
    assert message in called.error


def test_a_library_that_is_missing_is_no_bad_input(
    call: Any, image_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    called = call("build", image_bundle, "--engine", "tensorrt")
    assert called.code == 1
    assert "EngineMissingError: Expected the package tensorrt" in called.error


def test_a_place_that_cannot_be_written_to_is_told_before_the_export(call: Any, recipe: Path) -> None:
    (recipe.parent / "in_the_way").write_text("")
    called = call("build", recipe, "--output", recipe.parent / "in_the_way" / "bundle")
    assert called.code == 2
    assert "cannot be written to" in called.error and "Give another place with --output." in called.error
    assert "rewrite" not in called.stderr


def test_what_is_no_bundle(call: Any, tmp_path: Path) -> None:
    called = call("build", tmp_path)
    assert called.code == 2
    assert "is not a bundle" in called.error


def test_a_build_file_exports_once_and_again_when_something_changed(call: Any, recipe: Path) -> None:
    bundle = recipe.parent / "made" / "image.bundle"
    assert call("build", recipe, "--check").code == 3
    assert not bundle.exists()
    called = call("build", recipe, "--json", "-")
    assert called.code == 0, called.stderr
    assert called.json == {"bundle": str(bundle), "engines": []}
    written, recipe_of_first = (bundle / "manifest.json").stat().st_mtime_ns, Bundle.open(bundle).manifest.recipe
    assert call("build", recipe, "--check").code == 0
    called = call("build", recipe)
    assert called.code == 0 and "rewrite" not in called.stderr
    assert (bundle / "manifest.json").stat().st_mtime_ns == written
    recipe.write_text(recipe.read_text() + 'text = "frozen"\n')
    assert call("build", recipe, "--check", "--json", "-").json == {"bundle": str(bundle), "outdated": [str(bundle)]}
    assert call("build", recipe).code == 0
    assert Bundle.open(bundle).manifest.recipe not in ("", recipe_of_first)
    assert call("build", recipe, "--check").code == 0


@pytest.mark.parametrize("change", ["weights", "damage"])
def test_another_model_and_a_damaged_bundle_are_exported_again(call: Any, recipe: Path, change: str) -> None:
    bundle = recipe.parent / "made" / "image.bundle"
    assert call("build", recipe).code == 0
    before = Bundle.open(bundle).fingerprint
    if change == "damage":
        (bundle / "edit.onnx").write_bytes(b"cut short")
    else:
        model = onnx.load(recipe.parent / "image.onnx")
        model.graph.initializer[0].raw_data = bytes(len(model.graph.initializer[0].raw_data))
        onnx.save(model, recipe.parent / "image.onnx")
    assert call("build", recipe).code == 0
    assert (Bundle.open(bundle).fingerprint == before) == (change == "damage")


def test_external_weights_belong_to_the_model(call: Any, recipe: Path) -> None:
    model = onnx.load(recipe.parent / "image.onnx")
    onnx.save(model, recipe.parent / "image.onnx", save_as_external_data=True, location="image.data", size_threshold=0)
    assert call("build", recipe).code == 0
    data = bytearray((recipe.parent / "image.data").read_bytes())
    data[0] ^= 1
    (recipe.parent / "image.data").write_bytes(data)
    assert call("build", recipe, "--check").code == 3


def files_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_the_bundle_may_go_elsewhere_and_the_source_tree_stays_as_it_is(
    call: Any, recipe: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place, before = tmp_path_factory.mktemp("place") / "elsewhere", files_of(recipe.parent)
    called = call("build", recipe, "-o", place)
    assert called.code == 0
    assert (place / "manifest.json").is_file()
    assert files_of(recipe.parent) == before and len(list(recipe.parent.iterdir())) == len(before)


def test_of_two_builds_of_one_file_one_waits(recipe: Path) -> None:
    command = [sys.executable, "-c", "from retouch.cli import main; main()", "build", str(recipe)]
    with exclusive(recipe):
        other = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        assert other.stderr is not None
        assert b"another build is at work" in other.stderr.read(len(f"{recipe}: another build is at work".encode()))
        assert not (recipe.parent / "made").exists()
    _, errors = other.communicate(timeout=60)
    assert other.returncode == 0, errors
    assert Bundle.open(recipe.parent / "made" / "image.bundle").manifest.recipe


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bundle = ", "to be a build file in TOML"),
        ("", "expected all members; missing are those, got ['bundle', 'model']"),
        ('bundle = "b"\n[model]\n', "retouch.toml.model: expected all members; missing are those, got ['source']"),
        (RECIPE + "axis = [2]\n", "retouch.toml.model: expected no further members, got ['axis']"),
        (RECIPE + 'axes = "2,3"\n', "retouch.toml.model.axes: expected a list, got '2,3'"),
        (RECIPE + "[[engine]]\n", "retouch.toml.engine[0]: expected all members; missing are those, got ['target']"),
        (
            RECIPE + '[[engine]]\ntarget = "openvino"\n',
            "Expected target to be one of tensorrt-rtx, tensorrt, ort, got 'openvino'",
        ),
        (RECIPE.replace("image.onnx", "nothing.onnx"), "There is no model at"),
    ],
)
def test_build_files_that_are_wrong(call: Any, recipe: Path, text: str, message: str) -> None:
    recipe.write_text(text)
    called = call("build", recipe)
    assert called.code == 2
    assert message in called.error
    assert not (recipe.parent / "made").exists()


def test_options_beside_a_build_file(call: Any, recipe: Path) -> None:
    called = call("build", recipe, "--engine", "tensorrt-rtx")
    assert called.code == 2
    assert "A build file says what to build" in called.error
