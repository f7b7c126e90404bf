"""The benchmark of families on one tiny family."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from retouch.errors import ModelError
from retouch.models import Sizes
from retouch.validation.benchmarks.families import _catalogue as catalogue
from retouch.validation.benchmarks.families import _main as command
from retouch.validation.benchmarks.families import main
from retouch.validation.benchmarks.families._bundles import family_bundle
from retouch.validation.benchmarks.families._family import Family, TorchSource, bound

pytest.importorskip("transformers")

OUT_OF_REACH = 1e-6
TINY = Family(
    "tiny",
    "a tiny language model",
    TorchSource(
        "transformers.BertForMaskedLM",
        {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 32, "max_position_embeddings": 64},
        Sizes(tokens=64),
    ),
    MappingProxyType({0.02: OUT_OF_REACH}),
)  # fmt: skip


def run(folder: Path, names: str | None = None, **more: bool) -> None:
    main(names, folder / "build", folder / "docs" / "families.md", repeats=1, **more)


def test_one_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (catalogue, command):
        monkeypatch.setattr(module, "FAMILIES", MappingProxyType({TINY.name: TINY}))
    run(tmp_path)
    written = json.loads((tmp_path / "docs" / "families.json").read_text())
    (family,) = written["families"]
    assert (family["name"], family["rows"], family["dense"]) == ("tiny", [64], 0)
    assert 0 < family["error"] <= 2e-5
    assert [edit["area"] for edit in family["edits"]] == [0.02, 0.05, 0.1, 0.25]
    for edit in family["edits"]:
        assert edit["ratio"] == pytest.approx(edit["edit_ms"] / edit["full_ms"])
        assert edit["bound"] == pytest.approx(bound(edit["flop_ratio"]))
        assert edit["stock_ratio"] > 0, "families with targets are measured on stock kernels too"
    page = (tmp_path / "docs" / "families.md").read_text()
    assert "| a tiny language model | 2% |" in page
    targets = page.partition("## Targets")[2]
    assert "| 0.000 | **missed** |" in targets
    assert str(tmp_path) not in page

    said: list[str] = []
    assert family_bundle(TINY, tmp_path / "build", said.append).key == family["key"]
    assert not said, "the bundle that is there is exported again"
    assert list(command._kept(tmp_path / "docs" / "families.json", written["facts"], tmp_path / "build")) == ["tiny"]


def test_bundles_are_made_beforehand_and_measured_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (catalogue, command):
        monkeypatch.setattr(module, "FAMILIES", MappingProxyType({TINY.name: TINY}))
    run(tmp_path, measure=False)
    assert not (tmp_path / "docs").exists()
    stamp = tmp_path / "build" / "tiny.key"
    made = stamp.read_text()
    stamp.write_text("an earlier state")
    run(tmp_path, earlier=True)
    page = (tmp_path / "docs" / "families.md").read_text()
    assert "earlier state of the exporter than there was when they were measured: a tiny language model." in page
    assert stamp.read_text() == "an earlier state"
    run(tmp_path)
    assert "earlier state" not in (tmp_path / "docs" / "families.md").read_text()
    assert stamp.read_text() == made


def test_figures_of_other_families_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(TINY, name="other", title="another language model")
    for module in (catalogue, command):
        monkeypatch.setattr(module, "FAMILIES", MappingProxyType({one.name: one for one in (TINY, other)}))
    run(tmp_path, "tiny")
    (first,) = json.loads((tmp_path / "docs" / "families.json").read_text())["families"]
    shutil.rmtree(tmp_path / "build")
    run(tmp_path, "other")
    kept, new = json.loads((tmp_path / "docs" / "families.json").read_text())["families"]
    assert (kept, new["name"]) == (first, "other")
    page = (tmp_path / "docs" / "families.md").read_text()
    assert "| a tiny language model | 5% |" in page and "| another language model | 5% |" in page


def test_figures_are_kept_on_the_same_system_and_for_the_same_bundle(tmp_path: Path) -> None:
    written = tmp_path / "families.json"
    entry = {"name": "x", "title": "", "rows": [], "gflop": 1.0, "coverage": 1.0, "dense": 0, "error": 0.0, "edits": [],
             "earlier": False, "date": "1"}  # fmt: skip
    written.write_text(json.dumps({"facts": {"rounds": 9, "date": "1"}, "families": [{**entry, "key": "as made"}]}))
    assert list(command._kept(written, {"rounds": 9, "date": "2"}, tmp_path)) == ["x"]
    assert not command._kept(written, {"rounds": 3, "date": "2"}, tmp_path)
    (tmp_path / "x.key").write_text("as made")
    assert list(command._kept(written, {"rounds": 9, "date": "2"}, tmp_path)) == ["x"]
    (tmp_path / "x.key").write_text("made anew")
    assert not command._kept(written, {"rounds": 9, "date": "2"}, tmp_path)


def test_unknown_family(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'sd99'.*sd15"):
        run(tmp_path, "sd99")
    assert not (tmp_path / "docs").exists()
