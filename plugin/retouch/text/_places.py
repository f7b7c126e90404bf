"""Places in a text as spans of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from retouch.errors import RegionError
from retouch.text._spans import Replacement, is_index


class Places:
    """Where every token of a text begins and ends."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces
        self._ends = list(accumulate(map(len, pieces)))

    def span(self, place: tuple[int, int], replacement: Replacement) -> tuple[tuple[int, int], Replacement]:
        """The tokens that a place covers, wholly or partly, and its replacement.

        A text that replaces part of a token gets the rest of that token, so that only the place itself changes.

        Raises:
            RegionError: the place is out of range, or lies inside a token with nothing to tell what becomes of it.
        """
        start, end = place
        length = self._ends[-1] if self._ends else 0
        if not (is_index(start) and is_index(end) and 0 <= start <= end <= length):
            raise RegionError(
                f"Expected places within the text's {length} characters, start before end, got {place}. The prompt's "
                "first character is 0."
            )
        first = next((index for index, stop in enumerate(self._ends) if stop > start), len(self._pieces))
        begin = self._begin(first)
        if start == end and begin == start:
            return (first, first), replacement
        last = next(index for index, stop in enumerate(self._ends) if stop >= end)
        before, behind = self._pieces[first][: start - begin], self._pieces[last][end - self._begin(last) :]
        if isinstance(replacement, str):
            return (first, last + 1), before + replacement + behind
        if start == end:
            raise RegionError(
                f"Expected a place between two tokens, got {start} inside of one. Give a text, or move it."
            )
        return (first, last + 1), replacement

    def _begin(self, index: int) -> int:
        return self._ends[index - 1] if index else 0
