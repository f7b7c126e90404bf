"""A tokenizer of characters, and of runs of spaces as they indent code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from retouch.errors import FeedError

_MASK_PIECE = "\N{MEDIUM SHADE}"


class CharacterTokenizer:
    """One id per symbol; a symbol is a character, or a run of spaces.

    Where symbols overlap, as one space and four do, the longest one is taken. The ids after the symbols' are the end of
    a text and the mask; no text encodes to them.
    """

    def __init__(self, symbols: Sequence[str]) -> None:
        """Stores the symbols, whose ids are their places in this list.

        Raises:
            FeedError: there are none, or one is empty or listed twice.
        """
        self.symbols = tuple(symbols)
        if not self.symbols or not all(self.symbols) or len(set(self.symbols)) != len(self.symbols):
            raise FeedError(
                f"Expected symbols that are not empty and differ, got {len(self.symbols)} of which "
                f"{len(set(self.symbols))} differ. Take those of the model's tokenizer file."
            )

    @property
    def vocabulary(self) -> int:
        """The number of ids, the special ones included."""
        return len(self.symbols) + 2

    @property
    def eos_id(self) -> int:
        """The id that ends a text."""
        return len(self.symbols)

    @property
    def mask_id(self) -> int:
        """The id of a token that is still to be chosen."""
        return len(self.symbols) + 1

    def encode(self, text: str) -> list[int]:
        """The ids of a text; never a special one.

        Raises:
            FeedError: it holds a character that is no symbol.
        """
        ids, end = [], 0
        for match in self._pattern.finditer(text):
            if match.start() != end:
                break
            ids.append(self._ids[match[0]])
            end = match.end()
        if end != len(text):
            raise FeedError(
                f"Expected characters that the tokenizer has, got {text[end]!r} at position {end}. Replace it; a tab, "
                "for one, by four spaces."
            )
        return ids

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What every id adds to the text; nothing for the end, one visible character for the mask."""
        table = (*self.symbols, "", _MASK_PIECE)
        return [table[token] for token in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids."""
        return "".join(self.pieces(ids))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: index for index, symbol in enumerate(self.symbols)}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.symbols, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)))


def code_characters() -> CharacterTokenizer:
    """The tokenizer for code: line feed, four spaces (one level of indentation), and the printable ASCII characters."""
    return CharacterTokenizer(("\n", "    ", *map(chr, range(32, 127))))
