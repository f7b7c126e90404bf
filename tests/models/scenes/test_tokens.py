"""The tokenizer has a token for every word of captions, and diffusers' own class loads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retouch.models.scenes import PIPELINE, unseen_scenes
from retouch.models.scenes._scene import words
from retouch.models.scenes._tokens import LENGTH, make_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("transformers")
    return make_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def test_every_word_is_one_token(tokenizer: Any) -> None:
    for word in (*words(), ","):
        assert len(tokenizer(word, add_special_tokens=False).input_ids) == 1, word


def test_captions_come_back(tokenizer: Any) -> None:
    for scene in unseen_scenes(30):
        tokens = tokenizer(scene.caption, padding="max_length", return_tensors="np").input_ids[0]
        assert tokens.shape == (LENGTH,), "three objects fit"
        assert tokenizer.decode(tokens, skip_special_tokens=True).replace(" ,", ",") == scene.caption


def test_the_class_of_pipelines_loads_it(tokenizer: Any, tmp_path: Path) -> None:
    from transformers import CLIPTokenizer

    tokenizer.save_pretrained(tmp_path)
    loaded = CLIPTokenizer.from_pretrained(tmp_path)
    caption = unseen_scenes(3)[-1].caption
    assert loaded(caption).input_ids == tokenizer(caption).input_ids
    assert loaded.model_max_length == LENGTH


def test_the_shipped_one_is_read_by_older_releases_too() -> None:
    """These read two plain files, newer ones one of their own: both say the same."""
    folder = PIPELINE / "tokenizer"
    newer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    assert json.loads((folder / "vocab.json").read_text(encoding="utf-8")) == newer["vocab"]
    merges = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()[1:]
    pairs = [pair if isinstance(pair, list) else pair.split() for pair in newer["merges"]]
    assert [line.split() for line in merges] == pairs
