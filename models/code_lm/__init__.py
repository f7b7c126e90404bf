"""A small block-diffusion language model of code: its network, its data, its training."""

from __future__ import annotations

__all__ = [
    # The network
    "PATTERNS_MODEL",
    "CodeLmConfig",
    "load_code_lm",
    "load_tokenizer",
    "save_code_lm",
    # Data
    "Corpus",
    "CorpusName",
    "corpora",
    "held_out",
    "held_out_patterns",
    "pattern_text",
    "python_source",
    "stripped",
    "training_patterns",
    "unseen_patterns",
]

from retouch.models.code_lm._checkpoint import (
    PATTERNS_MODEL,
    load_code_lm,
    load_tokenizer,
    save_code_lm,
)
from retouch.models.code_lm._config import CodeLmConfig
from retouch.models.code_lm._corpora import CorpusName, corpora, held_out
from retouch.models.code_lm._corpus import Corpus
from retouch.models.code_lm._patterns import held_out_patterns, pattern_text, training_patterns, unseen_patterns
from retouch.models.code_lm._python_source import python_source, stripped
