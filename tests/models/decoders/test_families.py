"""Families of language models against their layers written down in torch, from checkpoints of random weights."""

from __future__ import annotations

from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest
import torch

from retouch import EditSession
from retouch.errors import ModelError
from retouch.models.decoders import _checkpoint as checkpoint
from retouch.models.decoders import decoder_for, export_language_model, export_text_edits
from retouch.text import TextModel
from tests.models.decoders.torch_families import DREAM, FAMILIES, LLADA, LLADA2, VOCABULARY, saved


@pytest.mark.parametrize("name", FAMILIES)
def test_exports_choose_the_tokens_that_torch_chooses(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    weights = saved(family, tmp_path / "model")
    bundle = export_language_model(tmp_path / "model", tmp_path / "bundle")
    spec = bundle.manifest.model
    ids = np.random.default_rng(2).integers(0, VOCABULARY, 4 * 8)
    wanted = family.logits(weights, family.config, torch.from_numpy(ids)).numpy()
    model = TextModel(bundle, threads=1)
    got = model.uncached(len(ids), window=not spec.block_causal).read(ids, 0)
    np.testing.assert_allclose(got, wanted, atol=1e-4 * np.abs(wanted).max())
    assert got.argmax(-1).tolist() == wanted.argmax(-1).tolist()
    if spec.block_causal:
        cached = model.context(len(ids))
        parts = [cached.read(ids[start : start + spec.block], start) for start in range(0, len(ids), spec.block)]
        assert np.concatenate(parts).argmax(-1).tolist() == wanted.argmax(-1).tolist()


@pytest.mark.parametrize("name", ["llada", "dream"])
def test_edits_of_rows_are_exact_where_all_rows_are_computed(name: str, tmp_path: Path) -> None:
    family, tokens = FAMILIES[name], 24
    weights = saved(family, tmp_path / "model", shards=1)
    bundle = export_text_edits(tmp_path / "model", tmp_path / "edits", tokens)
    ids = np.random.default_rng(3).integers(0, VOCABULARY, (1, tokens))
    changed = ids.copy()
    changed[0, 5:9] = 39
    with EditSession(bundle, threads=1) as session:
        run = session.base({"ids": ids})
        edited = session.edit(run, {"ids": changed}, region=np.ones(tokens, bool), fallback=False)
    wanted = family.logits(weights, family.config, torch.from_numpy(changed[0])).numpy()
    np.testing.assert_allclose(edited.outputs["logits"][0], wanted, atol=1e-4 * np.abs(wanted).max())


def test_no_more_than_one_weight_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a checkpoint with many tensors no two that were read are alive at once, but for those of one stack."""
    saved(FAMILIES["llada2_moe"], tmp_path / "model")
    alive: WeakValueDictionary[int, np.ndarray] = WeakValueDictionary()
    most = 0
    read = checkpoint.Checkpoint.stacked

    def counted(self: checkpoint.Checkpoint, names: list[str]) -> np.ndarray:
        nonlocal most
        array = np.array(read(self, names))
        alive[id(array)] = array
        most = max(most, len(alive))
        return array

    monkeypatch.setattr(checkpoint.Checkpoint, "stacked", counted)
    monkeypatch.setattr("retouch.export.decoder._export.check_graphs", lambda *_: {})
    export_language_model(tmp_path / "model", tmp_path / "bundle")
    assert 1 <= most <= 2


def test_other_configurations_are_refused() -> None:
    cases = [
        (LLADA, "block_type", "sequential"),
        (DREAM, "rope_scaling", {"factor": 2}),
        (LLADA2, "use_qk_norm", False),
    ]
    for config, key, value in cases:
        with pytest.raises(ModelError, match=f"with {key} = "):
            decoder_for(config["model_type"]).spec({**config, key: value})


def test_edits_need_a_model_without_experts(tmp_path: Path) -> None:
    saved(FAMILIES["llada2_moe"], tmp_path / "model")
    with pytest.raises(ModelError, match="without experts"):
        export_text_edits(tmp_path / "model", tmp_path / "edits", 16)
    saved(FAMILIES["llada"], tmp_path / "plain")
    with pytest.raises(ModelError, match="1 to 128 tokens, got 500"):
        export_text_edits(tmp_path / "plain", tmp_path / "edits", 500)
