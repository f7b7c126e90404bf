"""The corpora by name, each with the tokenizer that suits it."""

from __future__ import annotations

from enum import Enum

from retouch.models.code_lm._corpus import Corpus
from retouch.models.code_lm._patterns import TRAINING_PATTERNS, held_out_patterns, training_patterns
from retouch.models.code_lm._python_source import python_source
from retouch.models.code_lm._symbols import learned_symbols
from retouch.tokens import CharacterTokenizer, code_characters

__all__ = ["CorpusName", "corpora", "held_out"]

_HELD_OUT = 200
_LEARNED_SYMBOLS = 256


class CorpusName(Enum):
    """What to learn from."""

    PATTERNS = "patterns"
    PYTHON = "python"


def corpora(name: CorpusName) -> tuple[CharacterTokenizer, Corpus, Corpus]:
    """The tokenizer, what to learn from, and what is held out.

    Patterns are texts of characters, of which windows show the first line, from which all others follow. Code has
    symbols of its own, learned from what it learns from.
    """
    if name is CorpusName.PATTERNS:
        tokenizer = code_characters()
        return (
            tokenizer,
            Corpus.of(training_patterns(TRAINING_PATTERNS), tokenizer, whole=True),
            held_out(name, tokenizer),
        )
    texts = python_source()
    tokenizer = learned_symbols(texts, _LEARNED_SYMBOLS)
    return tokenizer, Corpus.of(texts, tokenizer), held_out(name, tokenizer)


def held_out(name: CorpusName, tokenizer: CharacterTokenizer) -> Corpus:
    """What is held out, with a tokenizer that is there."""
    if name is CorpusName.PATTERNS:
        return Corpus.of(held_out_patterns(_HELD_OUT), tokenizer, whole=True)
    return Corpus.of(python_source(held_out=True), tokenizer)
