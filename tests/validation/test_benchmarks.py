"""The benchmark driver on a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retouch.engines.ort import OrtEngine
from retouch.validation.benchmarks import _subject as subject
from retouch.validation.benchmarks import main

pytest.importorskip("torch")


@pytest.fixture
def folders(reference_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(subject.CACHE_VARIABLE, str(reference_models))
    return tmp_path


def run(folders: Path) -> None:
    main("llada_tiny", folders / "build", folders / "out", folders / "docs" / "benchmarks.md", repeats=1)


@pytest.mark.slow
def test_page_and_figures(folders: Path) -> None:
    run(folders)
    written = json.loads((folders / "out" / "benchmarks.json").read_text())
    (model,) = written["models"]
    assert model["name"] == "llada_tiny"
    assert [row["area"] for row in model["one_thread"]] == pytest.approx([0.016, 0.047, 0.094, 0.25, 1.0], abs=1e-3)
    assert [row["rows"] for row in model["two_threads"]] == [row["rows"] for row in model["one_thread"]]
    assert model["footprint"]["edit"]["peak_bytes"] > 2**20
    page = (folders / "docs" / "benchmarks.md").read_text()
    for row in model["one_thread"]:
        assert f"**{row['ratio']:.3f}**" in page
    assert str(written["facts"]["ONNX Runtime"]) in page
    assert str(folders) not in page
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert all(len(line) <= 200 and line.endswith("|") for line in tables)


def test_bundles_are_kept_until_model_or_exporter_change(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    chosen = subject.find_subject("llada_tiny", folders)
    first = subject.calibrated_bundle(chosen, folders, said.append)
    assert OrtEngine().name in first.manifest.break_even
    assert any(line.startswith("calibrate") for line in said)
    said.clear()
    assert subject.calibrated_bundle(chosen, folders, said.append) == first
    assert said == []
    (first.path / "base.onnx").write_bytes(b"damaged")
    assert subject.calibrated_bundle(chosen, folders, said.append).fingerprint == first.fingerprint
    assert "export: load" in said
    said.clear()
    monkeypatch.setattr(subject, "_SOURCES", ("retouch.errors", "retouch.region"))
    subject.calibrated_bundle(chosen, folders, said.append)
    assert "export: load" in said
