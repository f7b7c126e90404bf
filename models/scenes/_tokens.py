"""The tokenizer of captions: a CLIP tokenizer whose vocabulary is the words of scenes."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from retouch.models.scenes._scene import words

if TYPE_CHECKING:
    from transformers import CLIPTokenizer

__all__ = ["LENGTH", "make_tokenizer"]

LENGTH = 32  # tokens: three objects are at most 31 with both marks
_START, _END = "<|startoftext|>", "<|endoftext|>"
_WORD_END = "</w>"


def make_tokenizer(folder: Path) -> CLIPTokenizer:
    """A ``CLIPTokenizer``; its vocabulary and merges are written into ``folder`` on the way.

    Every word is one token. Other words fall apart into letters and into ``<|endoftext|>`` for unknown ones.
    """
    from transformers import CLIPTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    merges = _merges([*words(), ","])
    letters = sorted({letter for word in [*words(), ","] for letter in word})
    symbols = [*letters, *(letter + _WORD_END for letter in letters), *("".join(pair) for pair in merges), _START, _END]
    vocabulary = {symbol: index for index, symbol in enumerate(dict.fromkeys(symbols))}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, indent=0), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return CLIPTokenizer(
        str(folder / "vocab.json"), str(folder / "merges.txt"), unk_token=_END, bos_token=_START, eos_token=_END,
        pad_token=_END, model_max_length=LENGTH,
    )  # fmt: skip


def _merges(vocabulary: list[str]) -> list[tuple[str, str]]:
    """Byte-pair merges, most frequent pair first, until every word is one symbol."""
    split = [[*word[:-1], word[-1] + _WORD_END] for word in vocabulary]
    merges: list[tuple[str, str]] = []
    while any(len(symbols) > 1 for symbols in split):
        pairs = [pair for symbols in split for pair in pairwise(symbols)]
        best = max(sorted(set(pairs)), key=pairs.count)
        merges.append(best)
        split = [_merged(symbols, best) for symbols in split]
    return merges


def _merged(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    joined: list[str] = []
    for symbol in symbols:
        if joined and (joined[-1], symbol) == pair:
            joined[-1] += symbol
        else:
            joined.append(symbol)
    return joined
