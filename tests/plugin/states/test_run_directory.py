"""Run directories: every dtype, damage on disk, and writes that are cut short."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from retouch.errors import RunFileError
from retouch.files import relative_path
from retouch.states import FileNames, RunRecord, read_record, read_run, write_run
from tests.full_disk import files_limited_to

RECORD = RunRecord("run-1", "../b", "f" * 64, "retouch test")
DTYPES = (
    *(
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
    ),
    *("bfloat16", "float8_e4m3fn", "int4", "complex64"),
)


def states() -> dict[str, Any]:
    bits = np.random.default_rng(0).integers(0, 2, (3, 5))
    return {name: bits.astype(getattr(ml_dtypes, name, name)) for name in DTYPES}


def parts() -> dict[str, dict[str, Any]]:
    return {
        "states": states(),
        "feeds": {"x": np.full((1, 2), np.nan, np.float32), "t": np.array(3)},
        "outputs": {"a/b": np.arange(3.0), "a:b": np.zeros((0, 2), np.int64), "A_B": np.array(2.5, np.float16)},
    }


def dtypes(arrays: dict[str, dict[str, Any]]) -> dict[str, dict[str, str]]:
    return {part: {name: array.dtype.name for name, array in values.items()} for part, values in arrays.items()}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path / "run", RECORD, parts())
    return tmp_path / "run"


def read(run: Path) -> dict[str, dict[str, Any]]:
    return read_run(run, read_record(run), dtypes(parts()))


def test_every_dtype_comes_back_bit_for_bit(run: Path) -> None:
    again, before = read(run), parts()
    assert again.keys() == before.keys()
    for part, arrays in before.items():
        assert again[part].keys() == arrays.keys()
        for name, array in arrays.items():
            got = again[part][name]
            assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())
            assert got.size == 0 or got.ctypes.data % 64 == 0


def test_outputs_are_plain_files_under_safe_names(run: Path) -> None:
    record = read_record(run)
    assert len({file.lower() for file in record.outputs.values()}) == 3
    np.testing.assert_array_equal(np.load(run / record.outputs["a/b"]), np.arange(3.0))
    assert FileNames().unique("../../etc") == "_etc"


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_run(tmp_path / "run", RECORD, parts())
    finally:
        os.umask(before)
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o640}


def test_the_bundle_is_remembered_relatively(tmp_path: Path) -> None:
    assert relative_path(tmp_path / "models" / "b", tmp_path / "runs" / "r") == "../../models/b"
    record = RunRecord("r", "../../models/b", "", "")
    assert record.bundle_path(tmp_path / "runs" / "r") == tmp_path / "models" / "b"


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run / "run.json").unlink(), "which has no run.json.*retouch run"),
        (lambda run: (run / "run.json").write_text("{"), "readable JSON.*make the run again"),
        (lambda run: (run / "run.json").write_bytes(b"\xff"), "readable JSON"),
        (lambda run: change(run / "run.json", lambda d: d.update(schema_version=7)), "schema version 1, got 7"),
        (lambda run: change(run / "run.json", lambda d: d.pop("files")), "expected all members.*'files'"),
        (lambda run: change(run / "run.json", lambda d: d["files"].popitem()), "expected files to list"),
        (
            lambda run: change(
                run / "run.json",
                lambda d: (d["outputs"].update(x="../x"), d["files"].update({"../x": {"bytes": 1, "sha256": ""}})),
            ),
            "inside of the run directory, got '../x'",
        ),
        (lambda run: (run / "states.safetensors").unlink(), "states.safetensors, but it does not exist"),
        (lambda run: (run / "states.safetensors").write_bytes(b"short"), r"bytes, got 5\..*copy the run"),
        (lambda run: flip(run / "states.safetensors"), "states.safetensors to have the SHA-256"),
        (lambda run: flip(run / "feeds.safetensors"), "feeds.safetensors to have the SHA-256"),
        (lambda run: flip(next((run / "outputs").iterdir())), "outputs.*to have the SHA-256"),
    ],
)
def test_damage_is_explained(run: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(run)
    with pytest.raises(RunFileError, match=message):
        read(run)


def test_arrays_of_another_dtype_or_name_are_refused(run: Path) -> None:
    wanted = dtypes(parts())
    wanted["states"]["bfloat16"] = "float32"
    with pytest.raises(RunFileError, match="'bfloat16' to be stored as float32, got uint16"):
        read_run(run, read_record(run), wanted)
    with pytest.raises(RunFileError, match="Expected arrays among t, got 'x'"):
        read_run(run, read_record(run), {**dtypes(parts()), "feeds": {"t": "int64"}})


@pytest.mark.parametrize("size", [16, 1024])
def test_full_disk_leaves_the_old_run(run: Path, size: int) -> None:
    large = {**parts(), "outputs": {"y": np.zeros(4096)}}
    with files_limited_to(size), pytest.raises(RunFileError, match="failed.*Nothing was changed"):
        write_run(run, RECORD, large)
    read(run)
    assert [path.name for path in run.parent.iterdir()] == ["run"]
    with files_limited_to(size), pytest.raises(RunFileError, match="failed"):
        write_run(run.parent / "new" / "deep", RECORD, large)
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_interruption_leaves_nothing(tmp_path: Path) -> None:
    def stop(directory: Path) -> None:
        assert (directory / "states.safetensors").is_file()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_run(tmp_path / "run", RECORD, parts(), stop)
    assert list(tmp_path.iterdir()) == []


def test_other_directories_are_not_replaced(run: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "run.json").write_text("{}")
    with pytest.raises(RunFileError, match="exists and is not a run directory"):
        write_run(tmp_path / "thesis", RECORD, parts())
    assert (tmp_path / "thesis" / "run.json").read_text() == "{}"
    write_run(run, RunRecord("run-2", "b", "", ""), parts())
    assert read_record(run).run_id == "run-2"
    shutil.copytree(run, tmp_path / "copy")
    assert read(tmp_path / "copy").keys() == parts().keys()


@pytest.mark.parametrize("name", ["notes.txt", "outputs/mine.png", "deeper/y.npy"])
def test_a_run_with_other_files_in_it_is_not_replaced(run: Path, name: str) -> None:
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_text("mine")
    with pytest.raises(RunFileError, match=rf"holds {name} beside a run directory; it is not replaced"):
        write_run(run, RunRecord("run-2", "b", "", ""), parts())
    assert (run / name).read_text() == "mine"
    assert read_record(run).run_id != "run-2"


def test_previews_of_outputs_are_the_run_s_own(run: Path) -> None:
    stem = Path(next(iter(read_record(run).outputs.values()))).stem
    for name in (f"{stem}.png", f"{stem}.1.png"):
        (run / "outputs" / name).touch()
    write_run(run, RunRecord("run-2", "b", "", ""), parts())
    assert read_record(run).run_id == "run-2"
