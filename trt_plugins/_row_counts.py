"""Row counts as a user writes them: ``64``, ``2%``, ``all``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from retouch.errors import BuildRequestError

__all__ = ["DEFAULT_ROWS", "row_counts", "stacked_counts"]

DEFAULT_ROWS = ("2%", "10%", "all")
"""Where regions of images usually are; ``all`` serves whatever fits the others not."""

_ALL = "all"
_LARGEST_STACK = 4
"""Sessions put so many edits in a stack that it costs at most this part of a full run."""
_COUNT = re.compile(r"\d+")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")


def row_counts(texts: Sequence[str], rows: int) -> tuple[int, ...]:
    """The row counts that are meant on a grid of so many rows, ascending, each once.

    Args:
        texts: counts, shares like ``2%``, or ``all``.
        rows: number of rows of the editable grid.

    Raises:
        BuildRequestError: a text is none of these, or names fewer than one row or more than there are.
    """
    counts = {_count(text.strip(), rows) for text in texts}
    if not counts:
        raise BuildRequestError("Expected at least one row count for profiles, got none. Write rows=2%,10%,all.")
    return tuple(sorted(counts))


def stacked_counts(counts: Sequence[int], rows: int) -> tuple[int, ...]:
    """The numbers of rows of several edits together, on a grid of so many rows: larger stacks do not pay."""
    return tuple(sorted({min(count, max(1, rows // _LARGEST_STACK)) for count in counts}))


def _count(text: str, rows: int) -> int:
    share = _SHARE.fullmatch(text)
    if text == _ALL:
        return rows
    if share is not None and 0 < float(share[1]) <= 100:
        return max(1, round(rows * float(share[1]) / 100))
    if _COUNT.fullmatch(text) and 1 <= int(text) <= rows:
        return int(text)
    raise BuildRequestError(
        f"Expected a row count from 1 to {rows}, a share of the rows like 2%, or all; got {text!r}. "
        "Write rows=2%,10%,all."
    )
