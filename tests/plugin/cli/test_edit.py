"""``retouch edit``: what it writes is what a session computes, and what the masked reference says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from retouch import EditSession, Region

BOX = Region.from_boxes([(2, 3, 5, 6)], (8, 8), "exact")


@pytest.fixture
def recorded(call: Any, hand_built: Any, tmp_path: Path) -> Path:
    """A run directory of the bundle written by hand, and beside it a bundle and a changed input."""
    shutil.copytree(hand_built.bundle.path, tmp_path / "bundle")
    np.savez(tmp_path / "base.npz", **hand_built.feeds(0))
    np.save(tmp_path / "x.npy", hand_built.feeds(1)["x"])
    options = ("-i", tmp_path / "base.npz", "-o", tmp_path / "run", "--group-norm", "corrected", "--threads", 1)
    assert call("run", tmp_path / "bundle", *options).code == 0
    return tmp_path / "run"


def edit(call: Any, run: Path, *options: object, out: str = "out") -> Any:
    changed = ("-i", f"x={run.parent / 'x.npy'}", "--threads", 1)
    return call("edit", run, *changed, "-o", run.parent / out, *options)


@pytest.mark.parametrize("mode", ["cached", "corrected"])
def test_outputs_are_the_masked_reference(call: Any, hand_built: Any, recorded: Path, mode: str) -> None:
    options = ("--region", "box:2,3,5,6", "--policy", "exact", "--group-norm", mode, "-i", "sigma=0.8")
    called = edit(call, recorded, *options, "--json", "-")
    assert called.code == 0, called.stderr
    got = np.load(recorded.parent / "out" / "y.npy")
    base, changed = hand_built.feeds(0), hand_built.feeds(1, sigma=0.8)
    active = BOX.active(hand_built.bundle.manifest.grids, hand_built.bundle.manifest.grid("fine"))
    masks = {grid: active.mask(grid) for grid in ("fine", "coarse")}
    expected = hand_built.masked(changed, hand_built.states(base), masks, mode)["y"].transpose(2, 0, 1)[None]
    np.testing.assert_allclose(got, expected, atol=2e-5)
    old = np.load(recorded / "outputs" / "y.npy")
    assert np.array_equal(got[..., ~masks["fine"]], old[..., ~masks["fine"]])
    assert (got != old)[..., masks["fine"]].all()
    report = called.json
    assert report == json.loads((recorded.parent / "out" / "report.json").read_text())
    assert (report["path"], report["group_norm"]) == ("edit", mode)
    assert report["active_rows"] == {"fine": 9, "coarse": 4}
    assert report["run"] == json.loads((recorded / "run.json").read_text())["run_id"]
    assert "active rows" in called.stderr


def test_commit_makes_the_next_base(call: Any, hand_built: Any, recorded: Path) -> None:
    options = ("--region", "box:2,3,5,6", "--group-norm", "corrected")
    assert edit(call, recorded, *options, "--commit", recorded.parent / "next").code == 0
    assert (
        call(
            *("edit", recorded.parent / "next", "-i", "sigma=0.9", "-o", recorded.parent / "second", "--threads", 1),
            *("--region", "box:0,0,2,2", "--group-norm", "corrected"),
        ).code
        == 0
    )
    with EditSession(hand_built.bundle, threads=1, group_norm="corrected") as session:
        first = session.edit(
            session.base(hand_built.feeds(0)), {"x": hand_built.feeds(1)["x"]}, region=_box(2, 3, 5, 6)
        )
        second = session.edit(first.commit(), {"sigma": np.array([0.9], np.float32)}, region=_box(0, 0, 2, 2))
    assert np.array_equal(np.load(recorded.parent / "out" / "y.npy"), first.outputs["y"])
    assert np.array_equal(np.load(recorded.parent / "second" / "y.npy"), second.outputs["y"])


def _box(*corners: int) -> Region:
    return Region.from_boxes([corners], (8, 8))


def test_a_run_can_be_replaced_by_its_edit(call: Any, recorded: Path) -> None:
    assert edit(call, recorded, "--region", "full", "--commit", recorded).code == 0
    result = np.load(recorded.parent / "out" / "y.npy")
    assert np.array_equal(np.load(recorded / "outputs" / "y.npy"), result)


def test_forms_of_regions(call: Any, recorded: Path) -> None:
    mask = np.array(BOX.mask)
    np.save(recorded.parent / "mask.npy", mask)
    Image.fromarray(np.where(mask, 255, 100).astype(np.uint8)).save(recorded.parent / "mask.png")
    numbers = ",".join(f"{8 * y + 3}-{8 * y + 5}" for y in (2, 3, 4))
    forms = (
        ("--region", "box:2,3,5,6"),
        ("--region", "box:2,3,5,4", "--region", "box:2,4,5,6"),
        ("--mask", recorded.parent / "mask.npy"),
        ("--mask", recorded.parent / "mask.png"),
        ("--rows", numbers),
        ("--region", "box:2,3,5,5", "--rows", "21,29,37"),
    )
    outputs = []
    for form in forms:
        called = edit(call, recorded, *form, "--policy", "exact", "--json", "-")
        assert called.json["active_rows"]["fine"] == 9, form
        outputs.append(np.load(recorded.parent / "out" / "y.npy"))
    assert all(np.array_equal(output, outputs[0]) for output in outputs)


def test_policy_and_dilation(call: Any, recorded: Path) -> None:
    for options, rows in (
        (("--policy", "exact"), 1),
        (("--policy", "fast"), 9),
        (("--dilate", 2), 25),
        (("--policy", "exact", "--dilate", 1), 9),
    ):
        called = edit(call, recorded, "--region", "box:4,4,5,5", *options, "--json", "-")
        assert called.json["active_rows"]["fine"] == rows


def test_the_bundle_may_move(call: Any, recorded: Path) -> None:
    (recorded.parent / "bundle").rename(recorded.parent / "elsewhere")
    called = edit(call, recorded, "--region", "full")
    assert called.code == 2
    assert "is not a bundle" in called.error
    assert edit(call, recorded, "--region", "full", "--bundle", recorded.parent / "elsewhere").code == 0


def test_another_bundle_is_refused(call: Any, otherwise_weighted: Any, recorded: Path) -> None:
    called = edit(call, recorded, "--region", "full", "--bundle", otherwise_weighted.bundle.path)
    assert called.code == 2
    assert "RunError: Expected a run of bundle" in called.error
    assert not (recorded.parent / "out").exists()


def test_damaged_runs_are_refused(call: Any, recorded: Path) -> None:
    states = recorded / "states.safetensors"
    content = states.read_bytes()
    for damaged, message in ((content[:-1], "bytes, got"), (content[:-1] + b"?", "to have the SHA-256")):
        states.write_bytes(damaged)
        called = edit(call, recorded, "--region", "full")
        assert called.code == 2
        assert "RunFileError" in called.error and message in called.error
    states.unlink()
    assert "states.safetensors, but it does not exist" in edit(call, recorded, "--region", "full").error
    assert "which has no run.json" in edit(call, recorded.parent, "--region", "full").error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Expected a region, got none"),
        (["--region", "circle:3"], "Expected --region box:Y0,X0,Y1,X1 or full"),
        (["--region", "box:1,2,3"], "Expected 4 numbers per box"),
        (["--region", "box:0,0,9,1"], "out of range"),
        (["--rows", "5-3"], "Write 3-5"),
        (["--rows", "a"], "Expected --rows like 3,5,10-20"),
        (["--rows", "64"], "the rows 0 to 63"),
        (["--rows", "0-99999999999999"], "the rows 0 to 63"),
        (["--region", "full", "--policy", "best"], "Expected a region policy among"),
        (["--region", "full", "--dilate", "-1"], "--dilate"),
        (["--mask", "absent.npy"], "The mask cannot be read"),
        (["--region", "full", "-i", "z=1"], "NAME among 'x', 'sigma'"),
        (["--region", "full", "--json", "/absent/folder/report.json"], "Expected to write /absent/folder/report.json"),
        (["--region", "full", "--json", "."], "Expected to write ."),
    ],
)
def test_bad_options(call: Any, recorded: Path, options: list[str], message: str) -> None:
    called = edit(call, recorded, *options)
    assert called.code == 2
    assert message in called.error


def test_masks_that_do_not_fit(call: Any, recorded: Path) -> None:
    for mask, message in (
        (np.ones((4, 4), bool), "the shape (8, 8) of the editable grid, got (4, 4)"),
        (np.ones((8, 8), np.uint8), "Expected a mask of dtype bool, got uint8"),
        (np.zeros((8, 8), bool), "There is nothing to edit"),
    ):
        np.save(recorded.parent / "mask.npy", mask)
        called = edit(call, recorded, "--mask", recorded.parent / "mask.npy")
        assert called.code == 2
        assert message in called.error


def test_a_folder_of_something_else_is_kept(call: Any, recorded: Path) -> None:
    (recorded.parent / "thesis").mkdir()
    (recorded.parent / "thesis" / "thesis.tex").touch()
    called = edit(call, recorded, "--region", "full", out="thesis")
    assert called.code == 2
    assert "is not a result directory; it is not replaced" in called.error
    assert "load the run" not in called.error
    called = edit(call, recorded, "--region", "full", "--commit", recorded.parent / "thesis", out="out")
    assert "is not a run directory; it is not replaced" in called.error
    assert "load the run" not in called.error and not (recorded.parent / "out").exists()
    assert [path.name for path in (recorded.parent / "thesis").iterdir()] == ["thesis.tex"]


def test_a_result_is_replaced_unless_it_holds_other_files(call: Any, recorded: Path) -> None:
    out = recorded.parent / "out"
    assert [edit(call, recorded, "--region", "full").code for _ in range(2)] == [0, 0]
    for name in ("notes.txt", "mask.npy", "y.backup.npy"):
        (out / name).touch()
        called = edit(call, recorded, "--region", "full")
        assert called.code == 2
        assert "is not a result directory; it is not replaced" in called.error
        (out / name).unlink()
    assert edit(call, recorded, "--region", "full", "--dilate", str(10**30)).code == 0


def test_a_run_that_keeps_too_little_is_explained(call: Any, recorded: Path) -> None:
    base = ("-i", recorded.parent / "base.npz", "-o", recorded.parent / "small")
    assert call("run", recorded.parent / "bundle", *base).code == 0
    called = edit(call, recorded.parent / "small", "--region", "full", "--group-norm", "corrected")
    assert called.code == 2
    assert "to keep all that an edit with 'corrected' GroupNorm moments reads" in called.error
    assert "group_norm=" not in called.error
