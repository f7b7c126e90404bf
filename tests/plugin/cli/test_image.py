"""``retouch image``: an image by prompt, edits of it by directory, regions from prompts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from retouch.sampling import TextToImage
from tests.plugin.cli.conftest import Call

PROMPT, OTHER = "a red circle", "a blue square"


@pytest.fixture(scope="module")
def exported(exported_tiny_pipeline: Any) -> Path:
    return exported_tiny_pipeline(1)


@pytest.fixture(scope="module")
def base(call: Call, exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images") / "base.image"
    asked = ("-p", PROMPT, "--steps", 3, "--guidance", 2, "--seed", 5, "--threads", 1)
    called = call("image", "generate", exported, *asked, "-o", folder)
    assert called.code == 0, called.error
    assert "MiB of states" in called.error
    return folder


def _pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path))


def test_an_image_is_that_of_the_library(base: Path, exported: Path) -> None:
    with TextToImage(exported, threads=1) as pipeline:
        made = pipeline.generate(PROMPT, steps=3, guidance=2.0, seed=5)
    np.testing.assert_array_equal(_pixels(base / "image.png"), made.image)
    np.testing.assert_array_equal(np.load(base / "image.npy"), made.image)


def test_an_edit_changes_its_region(call: Call, base: Path, tmp_path: Path) -> None:
    box = ("--region", "box:2,2,8,8", "--policy", "exact", "--threads", 1)
    called = call("image", "edit", base, "-p", OTHER, *box, "-o", tmp_path / "edited.png", "--json", "-")
    assert called.code == 0, called.error
    assert called.json["area"] == 36 / 256 and called.json["start"] == 0
    changed = (_pixels(tmp_path / "edited.png") != _pixels(base / "image.png")).any(-1)
    assert changed[2:8, 2:8].any()
    changed[2:8, 2:8] = False
    assert not changed.any()


def test_edits_in_a_row_by_mask_and_strength(call: Call, base: Path, tmp_path: Path) -> None:
    mask = np.zeros((16, 16), np.uint8)
    mask[8:14, 8:14] = 255
    Image.fromarray(mask).save(tmp_path / "mask.png")
    first, second = tmp_path / "first", tmp_path / "second.png"
    common = ("--mask", tmp_path / "mask.png", "--policy", "exact", "--threads", 1)
    options = ("--strength", 0.7, "--seed", 9, "--commit", first)
    called = call("image", "edit", base, "-p", OTHER, *common, *options, "-o", tmp_path / "first.png", "--json", "-")
    assert called.code == 0, called.error
    assert called.json["start"] == 1
    np.testing.assert_array_equal(_pixels(first / "image.png"), _pixels(tmp_path / "first.png"))
    corner = ("--region", "box:0,0,4,4", "--policy", "exact", "--seed", 4)
    called = call("image", "edit", first, "-p", PROMPT, *corner, "-o", second, "--json", "-")
    assert called.code == 0, called.error
    changed = (_pixels(second) != _pixels(first / "image.png")).any(-1)
    assert changed[:4, :4].any() and not changed[4:].any() and not changed[:, 4:].any()


def test_a_region_from_the_prompts(call: Call, base: Path, tmp_path: Path) -> None:
    mask, heat = tmp_path / "mask.png", tmp_path / "heat.png"
    asked = ("-p", OTHER, "--threshold", 0.6, "--threads", 1)
    called = call("image", "propose", base, *asked, "-o", mask, "--heat", heat)
    assert called.code == 0, called.error
    assert _pixels(heat).shape == _pixels(mask).shape == (16, 16)
    selected = _pixels(mask) > 127
    assert selected.any() and not selected.all()
    assert selected[_pixels(heat) > 0.61 * 255].all()
    edits = {}
    for name, where in (("proposed", ("--propose",)), ("masked", ("--mask", mask))):
        edits[name] = tmp_path / f"{name}.png"
        assert call("image", "edit", base, *asked, *where, "-o", edits[name]).code == 0
    np.testing.assert_array_equal(_pixels(edits["proposed"]), _pixels(edits["masked"]))


def test_a_pipeline_that_moved_is_named(call: Call, base: Path, exported: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(base, tmp_path / "moved"))
    record = json.loads((moved / "generation.json").read_text())
    (moved / "generation.json").write_text(json.dumps({**record, "pipeline": "nowhere"}))
    asked = ("image", "edit", moved, "-p", OTHER, "--region", "full", "-o", tmp_path / "edited.png")
    called = call(*asked)
    assert called.code == 2 and "has no retouch.json" in called.error
    assert call(*asked, "--pipeline", exported).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Expected a region, or --propose"),
        (("--propose", "--region", "full"), "Expected a region, or --propose"),
        (("--region", "box:0,0,99,4"), "99"),
        (("--region", "full", "--strength", 0), "Expected a strength above 0 and at most 1"),
        (("--region", "full", "--policy", "best"), "Expected a region policy among"),
    ],
)
def test_bad_input_exits_with_two(call: Call, base: Path, tmp_path: Path, arguments: tuple, message: str) -> None:
    called = call("image", "edit", base, "-p", OTHER, *arguments, "-o", tmp_path / "edited.png")
    assert called.code == 2 and message in called.error
    assert not (tmp_path / "edited.png").exists()


def test_pictures_that_cannot_be_written_are_told_before_anything_is_loaded(
    call: Call, base: Path, tmp_path: Path
) -> None:
    mask, absent = tmp_path / "mask.png", tmp_path / "absent"
    for arguments, message in [
        (("edit", "--region", "full", "-o", absent / "edited.png"), f"no folder {absent}. Give a file like image.png"),
        (("edit", "--region", "full", "-o", tmp_path / "edited.txt"), "a name that ends in '.txt'"),
        (("propose", "-o", mask, "--heat", tmp_path / "heat"), "a name that ends in ''"),
    ]:
        called = call("image", arguments[0], base, "-p", OTHER, *arguments[1:])
        assert called.code == 2 and message in called.error
        assert "load the image" not in called.error
    assert not mask.exists()


def test_a_folder_of_something_else_is_told_before_anything_is_made(
    call: Call, base: Path, exported: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    region = ("--region", "full", "-o", tmp_path / "edited.png", "--commit", tmp_path / "mine")
    for asked in (("generate", exported, "-o", tmp_path / "mine"), ("edit", base, *region)):
        called = call("image", *asked, "-p", OTHER)
        assert called.code == 2
        assert called.error.startswith("error: RunFileError") and "is not the directory of a generation" in called.error
    assert not (tmp_path / "edited.png").exists()


def test_each_kind_of_directory_has_its_command(call: Call, base: Path, exported: Path, tmp_path: Path) -> None:
    called = call("edit", base, "-o", tmp_path / "out", "--region", "full")
    assert called.code == 2 and "retouch image edit" in called.error
    called = call("image", "edit", exported, "-p", OTHER, "--region", "full", "-o", tmp_path / "edited.png")
    assert called.code == 2 and "has no generation.json" in called.error
    called = call("image", "generate", tmp_path, "-p", PROMPT, "-o", tmp_path / "out")
    assert called.code == 2 and "has no retouch.json" in called.error
