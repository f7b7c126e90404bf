"""The trained networks that come with the package."""

from __future__ import annotations

import pytest

from retouch.models.code_lm import CorpusName, held_out, load_code_lm, load_tokenizer
from retouch.models.code_lm._checkpoint import PATTERNS_MODEL
from retouch.models.code_lm._scoring import held_out_bits

MODELS = PATTERNS_MODEL.parent


@pytest.mark.parametrize(("corpus", "limit"), [(CorpusName.PATTERNS, 0.3), (CorpusName.PYTHON, 1.8)])
def test_they_know_texts_that_were_held_out(corpus: CorpusName, limit: float) -> None:
    """Far below what a network that only knows how often tokens occur could reach."""
    folder = MODELS / corpus.value
    network, tokenizer = load_code_lm(folder), load_tokenizer(folder)
    assert held_out_bits(network, held_out(corpus, tokenizer), 256, 1) < limit


def test_together_they_are_small() -> None:
    assert sum(file.stat().st_size for file in MODELS.glob("*/model.safetensors")) < 12e6
