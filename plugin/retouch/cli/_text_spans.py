"""Spans of a text as the command line has them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from retouch.errors import RegionError


def parse_spans(texts: Sequence[str], option: str) -> list[tuple[int, int]]:
    """The spans in texts like ``12:20``.

    Raises:
        RegionError: one is written differently.
    """
    spans = []
    for text in texts:
        match = re.fullmatch(r"(\d+):(\d+)", text)
        if match is None:
            raise RegionError(f"Expected {option} A:B, like 12:20, got {text!r}.")
        spans.append((int(match[1]), int(match[2])))
    return spans


def find_spans(text: str, wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Where texts stand in a text.

    Raises:
        RegionError: one is empty, or does not occur exactly once.
    """
    spans = []
    for part in wanted:
        count = text.count(part) if part else 0
        if count != 1:
            raise RegionError(f"Expected --find to give a text that occurs once, but {part!r} occurs {count} times.")
        start = text.index(part)
        spans.append((start, start + len(part)))
    return spans
