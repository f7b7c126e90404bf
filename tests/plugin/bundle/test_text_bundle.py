"""Text bundles on disk: a round trip, damage, and writes that are cut short."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from retouch.bundle import (
    TEXT_SCHEMA_VERSION,
    Bundle,
    ClustersSpec,
    DecoderSpec,
    SymbolsSpec,
    TextBundle,
    TextBundleWriter,
    TextManifest,
)
from retouch.errors import BundleError

SPEC = DecoderSpec("family", 10, 9, 8, 4, 64, 8, 1, 1, 1, 8, 8, 8, 1e4, 1e-5)
MANIFEST = TextManifest(TEXT_SCHEMA_VERSION, "test", SPEC, SymbolsSpec(("a", "b")), {"decode": 1e-7}, {})
ROWS = {f"{name}.onnx": name.encode() for name in ("focus", "rows", "similar")}
FILES = {"decode.onnx": b"with a cache", "full.onnx": b"without", "weights.bin": b"weights", **ROWS}


def write(path: Path, files: dict[str, bytes] = FILES) -> TextBundle:
    with TextBundleWriter(path) as writer:
        for name, contents in files.items():
            (writer.path / name).write_bytes(contents)
        return writer.finish(MANIFEST)


def change(path: Path, **members: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


def test_round_trip(tmp_path: Path) -> None:
    written = write(tmp_path / "b")
    opened = TextBundle.open(str(tmp_path / "b"))
    assert opened == written and opened.fingerprint == written.fingerprint
    assert opened.decode_graph.read_bytes() == FILES["decode.onnx"]
    assert opened.full_graph.read_bytes() == FILES["full.onnx"]
    assert write(tmp_path / "b", {**FILES, "weights.bin": b"others"}).fingerprint != written.fingerprint


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "text.json").unlink(), "not a text bundle: it has no text.json"),
        (lambda path: (path / "text.json").write_text("{"), "readable JSON"),
        (
            lambda path: change(path / "text.json", schema_version=True),
            f"schema version {TEXT_SCHEMA_VERSION}, got True",
        ),
        (
            lambda path: change(path / "text.json", files={}),
            "files to list decode.onnx, focus.onnx, full.onnx, rows.onnx, similar.onnx, weights.bin, got",
        ),
        (lambda path: change(path / "text.json", more=1), "no further members"),
        (lambda path: (path / "full.onnx").unlink(), "full.onnx, but it does not exist"),
        (lambda path: (path / "weights.bin").write_bytes(b"weight"), "7 bytes, got 6"),
        (lambda path: (path / "weights.bin").write_bytes(b"weightz"), "weights.bin to have the SHA-256"),
    ],
)
def test_damage_is_named(tmp_path: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(write(tmp_path / "b").path)
    with pytest.raises(BundleError, match=rf"{message}.*[Ee]xport"):
        TextBundle.open(tmp_path / "b")


def test_bad_arguments_are_explained(tmp_path: Path) -> None:
    bundle = write(tmp_path / "b")
    with pytest.raises(BundleError, match="hash, size, none, but got 'md5'"):
        TextBundle.open(bundle.path, check="md5")
    with pytest.raises(BundleError, match="Expected the directory of a bundle, got 5"):
        TextBundle.open(5)


def test_a_file_that_was_not_written_is_missed(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"Expected full\.onnx in"):
        write(tmp_path / "b", {name: data for name, data in FILES.items() if name != "full.onnx"})
    assert list(tmp_path.iterdir()) == []


def test_models_without_causal_blocks_have_no_graph_with_keys_and_values_in_place(tmp_path: Path) -> None:
    manifest = replace(MANIFEST, model=replace(SPEC, block_causal=False))
    with TextBundleWriter(tmp_path / "b") as writer:
        for name, contents in FILES.items():
            (writer.path / name).write_bytes(contents)
        written = writer.finish(manifest)
    assert "decode.onnx" not in written.manifest.files
    assert TextBundle.open(tmp_path / "b") == written
    assert written.rows_graph("focus").read_bytes() == b"focus"


def test_clusters_are_kept_beside_the_graphs(tmp_path: Path) -> None:
    before = write(tmp_path / "b")
    assert before.clusters is None
    clusters = ClustersSpec(1, (0, 1, 1), ((0.5, 0.25),), ((0.0, 1.0, 0.0, -1.0, 0.5),))
    after = before.with_clusters(clusters)
    assert TextBundle.open(tmp_path / "b") == after
    assert after.clusters == clusters and after.fingerprint == before.fingerprint
    assert clusters.of(5, 2).tolist() == [0, 0, 1, 1, 1]
    write(tmp_path / "b")  # a bundle with clusters is replaced as well
    assert TextBundle.open(tmp_path / "b").clusters is None


def test_clusters_that_could_not_be_written_leave_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = ClustersSpec(1, (0, 1, 1), ((0.5, 0.25),), ((0.0, 1.0, 0.0, -1.0, 0.5),))
    before = write(tmp_path / "b").with_clusters(clusters)

    def cut_off(path: Path, _data: object) -> None:
        path.write_text("{")
        raise OSError("no space")

    monkeypatch.setattr("retouch.bundle._text_bundle.write_record_file", cut_off)
    with pytest.raises(BundleError, match="clusters cannot be written to .*no space. Make the bundle writable"):
        before.with_clusters(clusters)
    assert TextBundle.open(tmp_path / "b").clusters is None


def test_bundles_of_other_models_say_what_this_one_is(tmp_path: Path) -> None:
    write(tmp_path / "b")
    with pytest.raises(BundleError, match="bundle of a language model, which `retouch text`"):
        Bundle.open(tmp_path / "b")


def test_a_failure_leaves_the_old_bundle_and_other_folders_alone(tmp_path: Path) -> None:
    before = write(tmp_path / "b").fingerprint
    with pytest.raises(ValueError, match="stop"), TextBundleWriter(tmp_path / "b") as writer:
        (writer.path / "full.onnx").write_bytes(b"half")
        raise ValueError("stop")
    assert TextBundle.open(tmp_path / "b").fingerprint == before
    (tmp_path / "b" / "notes.txt").touch()
    with pytest.raises(BundleError, match="not replaced"):
        write(tmp_path / "b")
