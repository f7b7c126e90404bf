"""``retouch run``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from retouch import EditSession, __version__
from retouch.bundle import Bundle
from retouch.states import read_record


def stock(model: Path, **feeds: Any) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).run(None, feeds)[0]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(1).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    return tmp_path / "picture.png"


def test_run_directory(call: Any, image_bundle: Path, image_model: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(2).standard_normal((1, 3, 16, 16), dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    called = call("run", image_bundle, "-i", f"x={tmp_path / 'x.npy'}", "--input", "step=2", "-o", tmp_path / "run")
    assert called.code == 0, called.stderr
    written = sorted(path.relative_to(tmp_path / "run").as_posix() for path in (tmp_path / "run").rglob("*.*"))
    assert written == ["feeds.safetensors", "outputs/y.npy", "outputs/y.png", "run.json", "states.safetensors"]
    output = np.load(tmp_path / "run" / "outputs" / "y.npy")
    np.testing.assert_allclose(output, stock(image_model, x=x, step=np.array([2])), atol=2e-6)
    said = json.loads((tmp_path / "run" / "run.json").read_text())
    assert said["schema_version"] == 1
    assert said["bundle_fingerprint"] == Bundle.open(image_bundle).fingerprint
    assert said["producer"] == f"retouch {__version__}"
    assert said["run_id"] in called.stderr
    assert not Path(said["bundle"]).is_absolute()
    assert read_record(tmp_path / "run").bundle_path(tmp_path / "run") == image_bundle


@pytest.mark.parametrize(("levels", "black", "white"), [("-1,1", -1, 1), ("0,1", 0, 1), ("255,0", 255, 0)])
def test_images_are_mapped_both_ways(
    call: Any, image_bundle: Path, tmp_path: Path, picture: Path, levels: str, black: float, white: float
) -> None:
    code = call(
        *("run", image_bundle, "-i", f"x={picture}", "-i", "step=1", "-o", tmp_path / "run", "--png-range", levels)
    ).code
    assert code == 0
    pixels = np.asarray(Image.open(picture)).transpose(2, 0, 1)[None] / 255
    with EditSession(image_bundle) as session:
        run = session.load_run(tmp_path / "run")
        np.testing.assert_allclose(run.feeds["x"], black + (white - black) * pixels, rtol=1e-6, atol=1e-6)
        shares = (run.outputs["y"][0] - black) / (white - black)
    preview = np.asarray(Image.open(tmp_path / "run" / "outputs" / "y.png")).transpose(2, 0, 1)
    assert np.abs(preview - 255 * np.clip(shares, 0, 1)).max() <= 0.51


def test_a_folder_of_something_else_is_told_before_the_run(call: Any, image_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    called = call("run", image_bundle, "-i", "x=1", "-i", "step=3", "-o", tmp_path / "mine")
    assert called.code == 2 and "is not a run directory; it is not replaced" in called.error
    assert "open the bundle" not in called.error


def test_an_archive_gives_all_feeds(call: Any, image_bundle: Path, tmp_path: Path) -> None:
    x = np.ones((1, 3, 16, 16), np.float32)
    np.savez(tmp_path / "feeds.npz", x=x, step=np.array([7]))
    assert call("run", image_bundle, "-i", tmp_path / "feeds.npz", "-i", "step=3", "-o", tmp_path / "run").code == 0
    with EditSession(image_bundle) as session:
        feeds = session.load_run(tmp_path / "run").feeds
    assert feeds["step"] == [3]
    assert np.array_equal(feeds["x"], x)


def test_group_norm_decides_what_is_kept(call: Any, hand_built: Any, tmp_path: Path) -> None:
    for mode, kept in (("cached", 5), ("corrected", 6)):
        options = ("-i", "x=0.5", "-i", "sigma=0.4", "--group-norm", mode, "-o", tmp_path / mode)
        assert call("run", hand_built.bundle.path, *options).code == 0
        with EditSession(hand_built.bundle) as session:
            run = session.load_run(tmp_path / mode)
            assert len(run.states) == kept
            assert (run.feeds["sigma"] == np.float32(0.4)).all()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("y=1", "NAME among 'x', 'step'"),
        ("nonsense", "NAME among 'x', 'step'"),
        ("step=2.5", "a whole number for input 'step' of dtype int64, got 2.5"),
        ("x=nan", "a finite number for input 'x'"),
        ("x=1e400", "a finite number for input 'x'"),
        ("x=1e39", "that dtype float32 of input 'x' can hold"),
        ("x=absent.npy", "absent.npy to be a readable .npy file"),
        ("x=absent.png", "absent.png to be a readable image"),
        ("x=image.tiff", "a file .npy or .png, got 'image.tiff'"),
        ("x={folder}/wrong.npy", "of shape (1, 3, 16, 16), got (3, 16, 16)"),
        ("x={folder}/objects.npy", "readable .npy file"),
        ("x={folder}/text.png", "readable image"),
        ("x={folder}/grey.png", "16x16 pixels (width x height) of 3 channels (RGB) for input 'x', got 5x4 of 1"),
        ("{folder}/text.npz", "readable .npz file"),
        ("{folder}/other.npz", "extra 'z'"),
        ("x={folder}/nan.npy", "Expected finite numbers in output 'y'"),
    ],
)
def test_bad_inputs(call: Any, image_bundle: Path, tmp_path: Path, value: str, message: str) -> None:
    np.save(tmp_path / "wrong.npy", np.zeros((3, 16, 16), np.float32))
    np.save(tmp_path / "nan.npy", np.full((1, 3, 16, 16), np.nan, np.float32))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "other.npz", z=np.zeros(1))
    Image.fromarray(np.zeros((4, 5), np.uint8)).save(tmp_path / "grey.png")
    for name in ("text.png", "text.npz"):
        (tmp_path / name).write_text("text")
    feeds = ("-i", "x=0", "-i", "step=1", "-i", value.replace("{folder}", str(tmp_path)))
    called = call("run", image_bundle, *feeds, "-o", tmp_path / "run")
    assert called.code == 2
    assert message in called.error
    assert not (tmp_path / "run").exists()


def test_missing_inputs_and_bad_options(call: Any, image_bundle: Path, tmp_path: Path) -> None:
    run = ("run", image_bundle, "-o", tmp_path / "run")
    assert "missing 'step'" in call(*run, "-i", "x=0").error
    for options, message in (
        (("--png-range", "1"), "Expected --png-range to be two numbers"),
        (("--png-range", "1,1"), "two different finite numbers"),
        (("--threads", "0"), "--threads"),
        (("--group-norm", "other"), "--group-norm"),
    ):
        called = call(*run, "-i", "x=0", "-i", "step=1", *options)
        assert called.code == 2
        assert message in called.error
    assert call("run", tmp_path / "absent", "-i", "x=0", "-o", tmp_path / "run").code == 2
    assert list(tmp_path.iterdir()) == []
