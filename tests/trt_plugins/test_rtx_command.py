"""``retouch build`` from the command line, with TensorRT-RTX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from retouch.bundle import Bundle
from retouch.cli import app
from tests.full_disk import files_limited_to

RECIPE = """
bundle = "made"

[model]
source = "{model}"
input = "x"
min_coverage = 0.0
precision = "float16"

[[engine]]
target = "tensorrt-rtx"
rows = ["10", "all"]
devices = ["8.9"]
"""


def call(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def test_engines_of_a_bundle_and_what_inspect_says_of_them(bundle: Bundle) -> None:
    called = call("build", bundle.path, "--engine", "tensorrt-rtx", "--profile", "rows=10,all", "--json", "-")
    said = json.loads(called.stdout)
    assert [engine["graph"] for engine in said["engines"]] == ["base.onnx", "prep.onnx", "edit.onnx"]
    assert [profile["rows"] for profile in said["engines"][2]["profiles"]] == [10, 256]
    assert not any(engine["kept"] for engine in said["engines"])
    assert "built in" in called.stderr
    again = call("build", bundle.path, "--profile", "rows=10", "--profile", "rows=all")
    assert again.stdout.count("up to date") == 3
    inspected = json.loads(call("inspect", bundle.path, "--json").stdout)
    assert list(inspected["engines"]) == [engine["name"] for engine in said["engines"]]
    assert "tensorrt-rtx" in call("inspect", bundle.path).stdout


def test_a_full_disk_is_told_and_exits_with_2(bundle: Bundle) -> None:
    with files_limited_to(1000):
        result = CliRunner().invoke(app, ["build", str(bundle.path), "--profile", "rows=all"])
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr and "Make room" in result.stderr
    assert Bundle.open(bundle.path).manifest.engines == {}
    assert not any(path.is_file() for path in (bundle.path / "engines").rglob("*"))


def test_a_build_file_goes_from_the_model_to_the_engines(model: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "retouch.toml"
    recipe.write_text(RECIPE.format(model=model))
    said = json.loads(call("build", recipe, "--json", "-").stdout)
    assert {engine["precision"] for engine in said["engines"]} == {"float16"}
    assert {tuple(engine["devices"]) for engine in said["engines"]} == {("8.9",)}
    assert json.loads(call("build", recipe, "--check", "--json", "-").stdout) == {
        "bundle": str(tmp_path / "made"),
        "outdated": [],
    }
    recipe.write_text(recipe.read_text().replace('"10", ', ""))
    result = CliRunner().invoke(app, ["build", str(recipe), "--check", "--json", "-"])
    assert result.exit_code == 3
    assert json.loads(result.stdout)["outdated"] == ["tensorrt-rtx: edit.onnx"]
    said = json.loads(call("build", recipe, "--json", "-").stdout)
    assert [engine["kept"] for engine in said["engines"]] == [True, True, False]


def test_builds_from_the_same_files_are_made_from_the_same(model: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "retouch.toml"
    recipe.write_text(RECIPE.format(model=model))
    one, other = (
        json.loads(call("build", recipe, "-o", tmp_path / name, "--json", "-").stdout)["engines"] for name in ("a", "b")
    )
    assert [engine["source"] for engine in one] == [engine["source"] for engine in other]
    bundles = [Bundle.open(tmp_path / name) for name in ("a", "b")]
    assert bundles[0].manifest.files == bundles[1].manifest.files
    assert bundles[0].manifest.recipe == bundles[1].manifest.recipe


def test_an_export_leaves_engines_of_graphs_that_stay_the_same(model: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "retouch.toml"
    recipe.write_text(RECIPE.format(model=model))
    first = json.loads(call("build", recipe, "--json", "-").stdout)["engines"]
    recipe.write_text(recipe.read_text().replace("min_coverage = 0.0", "min_coverage = 0.01"))
    again = call("build", recipe, "--json", "-")
    said = json.loads(again.stdout)["engines"]
    assert [engine["name"] for engine in said] == [engine["name"] for engine in first]
    assert all(engine["layers"] is None and not engine["kept"] for engine in said)
    assert again.stderr.count("copy the engine of") == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "retouch.toml"]
