"""Symbols for a tokenizer of code: characters, and the runs of them that save the most tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from retouch.tokens import CharacterTokenizer, code_characters

__all__ = ["learned_symbols"]

# Indents; words with a space before them; signs with a line feed behind them. No symbol reaches beyond such a piece, so
# a line feed is never joined to the indent behind it, and a prompt may end with either.
_PIECE = re.compile(r"(?:    )+| ?\w+|[^\w\s]*\n|[^\w\s]+| ")
_RARE = 10


def learned_symbols(texts: Iterable[str], count: int) -> CharacterTokenizer:
    """The tokenizer of code's characters with up to so many more symbols, by byte-pair merging (arXiv 1508.07909).

    Where symbols overlap the tokenizer takes the longest one, so the merges' order is not kept.
    """
    base = code_characters()
    words = _words(texts, base)
    found: list[str] = []
    for _ in range(count):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        found.append("".join(best))
        words = {_merged(word, best): times for word, times in words.items()}
    return CharacterTokenizer((*base.symbols, *dict.fromkeys(found)))


def _words(texts: Iterable[str], base: CharacterTokenizer) -> dict[tuple[str, ...], int]:
    pieces = Counter(piece for text in texts for piece in _PIECE.findall(text))
    return {
        tuple(base.pieces(base.encode(piece))): times
        for piece, times in pieces.items()
        if times >= _RARE and len(piece) > 1
    }


def _merged(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    if pair[0] not in word:
        return word
    parts, index = [], 0
    while index < len(word):
        joined = word[index : index + 2] == pair
        parts.append("".join(pair) if joined else word[index])
        index += 1 + joined
    return tuple(parts)
