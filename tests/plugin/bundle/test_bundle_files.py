"""Bundles as directories: odd places, damage on disk, and writes that are cut short."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from retouch.bundle import Bundle, BundleWriter, update_manifest
from retouch.errors import BundleError
from tests.full_disk import files_limited_to
from tests.plugin.bundle.smallest import FILES, MANIFEST, write


def test_every_file_is_recorded(bundle: Bundle) -> None:
    assert {name: spec.bytes for name, spec in bundle.manifest.files.items()} == {n: len(c) for n, c in FILES.items()}


def test_one_flipped_bit_is_found_by_the_hash_only(bundle: Bundle) -> None:
    content = bytearray(FILES["weights.bin"])
    content[9000] ^= 1
    (bundle.path / "weights.bin").write_bytes(content)
    assert Bundle.open(bundle.path, check="size") == bundle
    assert Bundle.open(bundle.path, check="none") == bundle
    with pytest.raises(BundleError, match=r"weights\.bin to have the SHA-256.*export again"):
        Bundle.open(bundle.path)


def test_missing_file_is_found_by_its_size(bundle: Bundle) -> None:
    (bundle.path / "edit.onnx").unlink()
    with pytest.raises(BundleError, match=r"edit\.onnx, but it does not exist.*export again"):
        Bundle.open(bundle.path, check="size")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("check", ["hash", "size"])
def test_a_file_of_another_size_is_found(bundle: Bundle, name: str, check: str) -> None:
    content = FILES[name]
    for changed in (content[: len(content) // 2], content + b"more"):
        (bundle.path / name).write_bytes(changed)
        with pytest.raises(
            BundleError, match=rf"{name} to have {len(content)} bytes, got {len(changed)}.*export again"
        ):
            Bundle.open(bundle.path, check=check)


def test_unknown_check_is_refused(bundle: Bundle) -> None:
    with pytest.raises(BundleError, match="hash, size, none, but got 'md5'"):
        Bundle.open(bundle.path, check="md5")


def test_odd_names_and_read_only_directories_open(tmp_path: Path) -> None:
    path = tmp_path / "Größe 3 テスト" / "with a space"
    write(path)
    for file in path.iterdir():
        file.chmod(0o444)
    path.chmod(0o555)
    try:
        assert Bundle.open(str(path)).file("base.onnx").read_bytes() == FILES["base.onnx"]
    finally:
        path.chmod(0o755)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "is not a bundle"),
        (lambda path: path.write_bytes(b"onnx"), "is a file, a bundle is a directory"),
        (lambda path: path.mkdir(), "has no manifest.json"),
        (lambda path: (path.mkdir(), (path / "manifest.json").write_bytes(b"\xff\xfe")), "is not text"),
        (lambda path: (path.mkdir(), (path / "manifest.json").write_text("[1, 2]")), "schema version None"),
        (lambda path: (path.mkdir(), (path / "manifest.json").write_text("{")), "not valid JSON"),
    ],
)
def test_what_is_no_bundle_is_explained(tmp_path: Path, make, message: str) -> None:
    make(tmp_path / "b")
    with pytest.raises(BundleError, match=message):
        Bundle.open(tmp_path / "b")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd"])
def test_files_outside_of_the_bundle_are_refused(bundle: Bundle, name: str) -> None:
    path = bundle.path / "manifest.json"
    data = json.loads(path.read_text())
    data["files"][name] = data["files"]["base.onnx"]
    path.write_text(json.dumps(data))
    with pytest.raises(BundleError, match="outside of the bundle"):
        Bundle.open(bundle.path, check="none")


def test_unlisted_file_is_explained(bundle: Bundle) -> None:
    with pytest.raises(BundleError, match=r"no file 'prep\.onnx'.*base\.onnx"):
        bundle.file("prep.onnx")


def test_manifest_needs_every_graph(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"lacks size and hash of edit\.onnx"), BundleWriter(tmp_path / "b") as writer:
        (writer.path / "base.onnx").write_bytes(b"base")
        (writer.path / "weights.bin").write_bytes(b"weights")
        writer.finish(MANIFEST)
    assert list(tmp_path.iterdir()) == []


def test_bundle_is_replaced_and_nothing_else_is_left(bundle: Bundle) -> None:
    again = write(bundle.path, MANIFEST.replace(producer="again"))
    assert again.manifest.producer == "again"
    assert again.fingerprint == bundle.fingerprint
    assert [path.name for path in bundle.path.parent.iterdir()] == ["b"]


def test_link_to_a_bundle_stays_a_link(bundle: Bundle) -> None:
    link = bundle.path.with_name("link")
    link.symlink_to(bundle.path)
    write(link, MANIFEST.replace(producer="again"))
    assert link.is_symlink()
    assert Bundle.open(bundle.path).manifest.producer == "again"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, ValueError])
def test_interruption_leaves_no_folder(tmp_path: Path, stop: type[BaseException]) -> None:
    with pytest.raises(stop), BundleWriter(tmp_path / "new" / "deeper" / "b") as writer:
        (writer.path / "base.onnx").write_bytes(b"half")
        raise stop
    assert list(tmp_path.iterdir()) == []


def test_leaving_without_finish_leaves_the_old_bundle(bundle: Bundle) -> None:
    with BundleWriter(bundle.path) as writer:
        (writer.path / "base.onnx").write_bytes(b"half")
    assert Bundle.open(bundle.path) == bundle


def test_failed_move_brings_the_old_bundle_back(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def fail_for_the_new_one(self: Path, target: Path) -> Path:
        if self.suffix == ".partial":
            raise OSError("cannot move")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(BundleError, match="cannot move"):
        write(bundle.path)
    monkeypatch.undo()
    assert Bundle.open(bundle.path) == bundle
    assert [path.name for path in bundle.path.parent.iterdir()] == ["b"]


def test_full_disk_leaves_the_old_bundle(bundle: Bundle) -> None:
    with files_limited_to(8192), pytest.raises(BundleError, match="Nothing was changed"):
        write(bundle.path)
    assert Bundle.open(bundle.path) == bundle
    assert [path.name for path in bundle.path.parent.iterdir()] == ["b"]


def test_full_disk_leaves_the_old_manifest(bundle: Bundle) -> None:
    with files_limited_to(16), pytest.raises(BundleError, match="cannot be written"):
        update_manifest(bundle.path, bundle.manifest.replace(producer="x" * 1000))
    assert Bundle.open(bundle.path) == bundle
    assert sorted(path.name for path in bundle.path.iterdir()) == sorted([*FILES, "manifest.json"])


def test_folder_of_another_program_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "manifest.json").write_text("{}")
    with pytest.raises(BundleError, match="not replaced"), BundleWriter(tmp_path / "web"):
        pass
    (tmp_path / "file").write_text("text")
    with pytest.raises(BundleError, match="not replaced"), BundleWriter(tmp_path / "file"):
        pass


@pytest.mark.parametrize("name", ["unet.onnx", "notes.txt", "deeper"])
def test_a_bundle_with_other_files_in_it_is_not_replaced(bundle: Bundle, name: str) -> None:
    (bundle.path / name).mkdir()
    with pytest.raises(BundleError, match="not replaced"), BundleWriter(bundle.path):
        pass


def test_a_folder_with_the_model_and_a_manifest_is_not_replaced(tmp_path: Path) -> None:
    for name in ("unet.onnx", "manifest.json"):
        (tmp_path / name).touch()
    with pytest.raises(BundleError, match="not replaced"), BundleWriter(tmp_path):
        pass


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        bundle = write(tmp_path / "b")
        update_manifest(bundle.path, bundle.manifest)
    finally:
        os.umask(before)
    assert stat.S_IMODE(bundle.path.stat().st_mode) == 0o750
    assert stat.S_IMODE((bundle.path / "manifest.json").stat().st_mode) == 0o640


def test_path_is_there_inside_the_block_only(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "b")
    with pytest.raises(BundleError, match="with statement"):
        _ = writer.path
    with writer:
        assert writer.path.is_dir()
    with pytest.raises(BundleError, match="with statement"):
        _ = writer.path


def test_update_needs_a_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is not a bundle"):
        update_manifest(tmp_path, MANIFEST)
