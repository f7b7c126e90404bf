"""Engines in bundles: listed, checked, replaced in one step, and never in the way of the bundle itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from retouch.bundle import (
    SCHEMA_VERSION,
    Bundle,
    EngineSpec,
    FileSpec,
    ProfileSpec,
    is_engine_file,
    store_engine,
)
from retouch.errors import BundleError
from tests.plugin.bundle.smallest import write

PROFILES = (
    ProfileSpec(2, {"M": (1, 2, 2), "H": (0, 1, 3)}),
    ProfileSpec(4, {"M": (1, 4, 4), "H": (0, 0, 4)}),
)


def engine(graph: str = "edit.onnx", source: str = "s") -> EngineSpec:
    return EngineSpec(graph, "tensorrt-rtx", "1.7", "float32", (), (), ("y",), PROFILES, source, FileSpec(0, ""))


def files(bundle: Bundle) -> set[str]:
    return {path.name for path in (bundle.path / "engines").rglob("*") if path.is_file()}


def test_an_engine_is_listed_and_the_bundle_is_the_same(bundle: Bundle) -> None:
    name = store_engine(bundle.path, memoryview(b"engine"), engine())
    again = Bundle.open(bundle.path)
    path, spec = again.engine(name)
    assert path.read_bytes() == b"engine"
    assert spec.profiles == PROFILES and spec.file.bytes == 6
    assert again.fingerprint == bundle.fingerprint
    assert again.manifest.files == bundle.manifest.files


def test_a_new_engine_takes_the_place_of_the_one_of_the_same_graph_only(bundle: Bundle) -> None:
    base = store_engine(bundle.path, memoryview(b"base"), engine("base.onnx"))
    old = store_engine(bundle.path, memoryview(b"old"), engine())
    new = store_engine(bundle.path, memoryview(b"new"), engine())
    assert set(Bundle.open(bundle.path).manifest.engines) == {base, new}
    assert files(bundle) == {Path(base).name, Path(new).name}
    assert old != new


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "edit-float32.*, but it does not exist"),
        (lambda path: path.write_bytes(b"engin"), "6 bytes, got 5"),
        (lambda path: path.write_bytes(b"enginE"), "was changed"),
    ],
)
def test_a_damaged_engine_is_named_and_the_bundle_opens_without_it(bundle: Bundle, damage, message: str) -> None:
    name = store_engine(bundle.path, memoryview(b"engine"), engine())
    damage(bundle.path / name)
    opened = Bundle.open(bundle.path)
    with pytest.raises(BundleError, match=f"(?s){message}.*build it again with `retouch build`"):
        opened.engine(name)


def test_an_engine_that_is_not_listed_is_explained(bundle: Bundle) -> None:
    with pytest.raises(BundleError, match="has no engine 'x'. It has none. Build one with `retouch build`"):
        bundle.engine("x")


def test_what_a_killed_build_left_goes_with_the_next_engine(bundle: Bundle) -> None:
    name = store_engine(bundle.path, memoryview(b"engine"), engine())
    folder = (bundle.path / name).parent
    half, young = (folder / f".edit-float32-0123456789abcdef.engine.0000000{digit}" for digit in (1, 2))
    unlisted, foreign = folder / "edit-float32-0123456789abcdef.engine", folder / "notes.txt"
    for path in (half, young, unlisted, foreign):
        path.write_bytes(b"left")
    os.utime(half, (time.time() - 3600,) * 2)
    store_engine(bundle.path, memoryview(b"another"), engine("base.onnx"))
    assert not half.exists() and not unlisted.exists()
    assert young.exists() and foreign.exists() and (bundle.path / name).exists()


STORING = """
import sys
from pathlib import Path
from retouch.bundle import EngineSpec, FileSpec, store_engine

for number in range(15):
    own = f"{sys.argv[2]}.{number}"
    spec = EngineSpec("edit.onnx", "tensorrt-rtx", "1.7", "float32", (own,), (), ("y",), (), own, FileSpec(0, ""))
    store_engine(Path(sys.argv[1]), memoryview(own.encode()), spec)
"""


def test_builds_at_once_lose_nothing_of_each_other(bundle: Bundle) -> None:
    """Each reads the manifest that the others write, and removes engines that none of them names."""
    commands = [[sys.executable, "-c", STORING, str(bundle.path), str(number)] for number in range(3)]
    for process in [subprocess.Popen(command) for command in commands]:
        assert process.wait(60) == 0
    opened = Bundle.open(bundle.path)
    assert {spec.devices for spec in opened.manifest.engines.values()} == {
        (f"{process}.{number}",) for process in range(3) for number in range(15)
    }
    assert all(opened.engine(name)[0].is_file() for name in opened.manifest.engines)


def test_an_export_replaces_a_bundle_with_engines_but_none_with_files_of_others(bundle: Bundle) -> None:
    name = store_engine(bundle.path, memoryview(b"engine"), engine())
    write(bundle.path)
    assert not (bundle.path / name).exists() and Bundle.open(bundle.path).manifest.engines == {}
    (bundle.path / "engines").mkdir()
    (bundle.path / "engines" / "mine.trt").write_bytes(b"mine")
    with pytest.raises(BundleError, match=r"holds engines/mine\.trt beside a bundle"):
        write(bundle.path)
    assert (bundle.path / "engines" / "mine.trt").exists()


def test_engines_are_told_from_other_files_wherever_their_bundle_lies(bundle: Bundle) -> None:
    name = Path(store_engine(bundle.path, memoryview(b"engine"), engine()))
    assert is_engine_file(name) and is_engine_file("unet" / Path("bundle") / name)
    assert not is_engine_file(Path(name.name)) and not is_engine_file(Path("others", *name.parts[1:]))
    assert not is_engine_file(name.with_name("mine.engine"))


def test_a_folder_that_cannot_be_written_to_is_explained(bundle: Bundle) -> None:
    (bundle.path / "engines").write_bytes(b"in the way")
    with pytest.raises(BundleError, match="cannot be written.*Make room"):
        store_engine(bundle.path, memoryview(b"engine"), engine())
    assert Bundle.open(bundle.path) == bundle


def test_a_bundle_of_schema_version_3_is_read(bundle: Bundle) -> None:
    path = bundle.path / "manifest.json"
    data = json.loads(path.read_text())
    data["stacked"] = data["stacked"]["cached"]
    del data["engines"], data["recipe"], data["edits"]["cached"]["owners"]
    path.write_text(json.dumps({**data, "schema_version": 3}))
    assert Bundle.open(bundle.path) == bundle
    path.write_text(json.dumps({**data, "schema_version": 2}))
    with pytest.raises(BundleError, match=f"schema version 2; this version of Retouch reads {SCHEMA_VERSION}"):
        Bundle.open(bundle.path)


def test_a_bundle_of_schema_version_6_is_read(bundle: Bundle) -> None:
    store_engine(bundle.path, memoryview(b"engine"), engine())
    before, path = Bundle.open(bundle.path), bundle.path / "manifest.json"
    data = json.loads(path.read_text())
    for spec in data["engines"].values():
        del spec["batch_axes"]
    path.write_text(json.dumps({**data, "schema_version": 6}))
    assert Bundle.open(bundle.path) == before


def test_engines_outside_of_the_bundle_are_refused(bundle: Bundle) -> None:
    name = store_engine(bundle.path, memoryview(b"engine"), engine())
    path = bundle.path / "manifest.json"
    path.write_text(path.read_text().replace(name, "../engine"))
    with pytest.raises(BundleError, match="outside of the bundle"):
        Bundle.open(bundle.path)


@pytest.mark.parametrize(
    ("sizes", "profile"),
    [
        ({"M": 1, "H": 0}, 0),
        ({"M": 2, "H": 3}, 0),
        ({"M": 2, "H": 4}, 1),
        ({"M": 3, "H": 0}, 1),
        ({"M": 4, "H": 5}, None),
        ({"M": 0, "H": 0}, None),
        ({"M": 1}, None),
    ],
)
def test_the_first_profile_that_admits_all_sizes_is_taken(sizes: dict[str, int], profile: int | None) -> None:
    assert engine().profile_of(sizes) == profile
