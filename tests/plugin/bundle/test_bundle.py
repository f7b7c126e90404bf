"""Bundles on disk: round trips, damage, and failures while writing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from retouch.bundle import Bundle, BundleWriter, MomentsSpec, manifest_from_json, manifest_to_json, update_manifest
from retouch.errors import BundleError
from tests.plugin.bundle.smallest import FILES, MANIFEST, write


def test_round_trip(tmp_path: Path) -> None:
    assert manifest_from_json(manifest_to_json(MANIFEST), "here") == MANIFEST
    bundle = write(tmp_path / "ein Bündel")
    assert bundle.manifest.replace(files={}) == MANIFEST
    assert bundle.file("weights.bin").read_bytes() == FILES["weights.bin"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.pop("schema_version"), "schema version None"),
        (lambda data: data.update(schema_version=True), "schema version True"),
        (lambda data: data.pop("files"), "missing are those, got \\['files'\\]"),
        (lambda data: data["grids"][0].update(dims=[2, 2.5]), r"grids\[0\].dims\[1\]: expected int"),
        (lambda data: data["grids"][0].update(dims=[2, True]), r"grids\[0\].dims\[1\]: expected int"),
        (lambda data: data.update(verification={"identity": "small"}), "verification.identity: expected a number"),
        (lambda data: data.update(verification={"identity": float("nan")}), "NaN is not a number"),
        (
            lambda data: data.update(
                break_even={"ort": {"engine": "ort", "threads": 1, "flop_ratio": 0.5, "points": [[0.1, 0.2, 0.3]]}}
            ),
            "points\\[0\\]: expected a list of 2",
        ),
        (lambda data: data.update(schema_version=99), "schema version 99"),
        (lambda data: data.pop("grids"), "missing"),
        (lambda data: data.update(extra=1), "no further members"),
        (lambda data: data["model"].update(opset="18"), "opset: expected int"),
    ],
)
def test_changed_manifest_is_refused(change, message: str) -> None:
    data = json.loads(manifest_to_json(MANIFEST))
    change(data)
    with pytest.raises(BundleError, match=message):
        manifest_from_json(json.dumps(data), "manifest.json")


def test_calibrated_edits_of_schema_version_7_have_no_spills() -> None:
    moments = MomentsSpec(("t",), ((0.5,),), {"cached": (0.1,)}, 0.9, {"cached": (-2.0,)})
    data = json.loads(manifest_to_json(MANIFEST.replace(moments=moments)))
    del data["moments"]["spills"]
    with pytest.raises(BundleError, match="spills"):
        manifest_from_json(json.dumps(data), "manifest.json")
    read = manifest_from_json(json.dumps({**data, "schema_version": 7}), "manifest.json")
    assert read == MANIFEST.replace(moments=replace(moments, spills={}))


def test_failure_leaves_the_old_bundle_alone(tmp_path: Path) -> None:
    before = write(tmp_path / "b").fingerprint
    with pytest.raises(RuntimeError, match="stop"), BundleWriter(tmp_path / "b") as writer:
        (writer.path / "weights.bin").write_bytes(b"half")
        raise RuntimeError("stop")
    assert Bundle.open(tmp_path / "b").fingerprint == before
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_full_disk_is_a_bundle_error(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="failed.*No space"), BundleWriter(tmp_path / "b"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_other_directories_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").touch()
    with pytest.raises(BundleError, match="is not a bundle"), BundleWriter(tmp_path / "b"):
        pass
    assert (tmp_path / "b" / "thesis.tex").exists()


def test_update_manifest_keeps_files(tmp_path: Path) -> None:
    bundle = write(tmp_path / "b")
    update_manifest(tmp_path / "b", bundle.manifest.replace(verification={"identity": 1e-7}))
    again = Bundle.open(tmp_path / "b")
    assert again.manifest.verification == {"identity": 1e-7}
    assert again.fingerprint == bundle.fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["editable"].update(grid="g9"), "the editable grid 'g9'"),
        (lambda data: data["editable"].update(input="z"), "'z', which is none of the inputs"),
        (lambda data: data.update(outputs=[]), "no outputs"),
        (lambda data: data.update(edits={}), "no edit graph 'cached'"),
        (lambda data: data["outputs"][0].update(grid="g9"), "the grid 'g9'"),
        (lambda data: data["inputs"][0].update(dtype="foo"), "the dtype 'foo'"),
        (lambda data: data["files"].pop("weights.bin"), "lacks size and hash of weights.bin"),
        (lambda data: data["edits"]["cached"].update(file="base.onnx"), "one file as two graphs"),
        (lambda data: data["edits"]["cached"].update(cached=["k"]), "the cacheable 'k'"),
        (lambda data: data["edits"]["cached"].update(neighbourhoods=["k"]), "the neighbourhood 'k'"),
    ],
)
def test_manifest_that_names_what_is_not_there_is_refused(tmp_path: Path, change, message: str) -> None:
    write(tmp_path / "b")
    path = tmp_path / "b" / "manifest.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(BundleError, match=message):
        Bundle.open(tmp_path / "b")
