"""Which tokens an edit changes, and to what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from retouch.bundle import DecoderSpec
from retouch.errors import RegionError
from retouch.text._model import Tokens
from retouch.tokens import check_tokens


@dataclass(frozen=True)
class Masks:
    """A replacement of so many tokens that the model chooses: more or fewer than the span has.

    Attributes:
        count: how many.
    """

    count: int


Replacement: TypeAlias = "Masks | str | Sequence[int] | None"
"""What comes in a span's place: as many tokens of the model's choice (``None``), another number, a text, or ids."""


@dataclass(frozen=True, eq=False)
class Patch:
    """A span and the tokens that come in its place; masks stand for those that the model chooses.

    Attributes:
        start: first token.
        end: the token behind the last one; equal to ``start`` to put something in.
        tokens: what comes in its place.
    """

    start: int
    end: int
    tokens: Tokens

    @property
    def shift(self) -> int:
        """By how much what follows moves."""
        return len(self.tokens) - (self.end - self.start)


@dataclass(frozen=True, eq=False)
class Draft:
    """A text with its patches in place.

    Attributes:
        tokens: its tokens, masks among them, to the end of the last block.
        length: how many of them belong to the text.
        prompt_tokens: how many are the prompt.
        touched: the blocks that a patch is in.
        moved_from: the first token that is not where it was, or ``None``.
    """

    tokens: Tokens
    length: int
    prompt_tokens: int
    touched: frozenset[int]
    moved_from: int | None


def patches(
    spans: Sequence[tuple[int, int]], replacements: Sequence[Tokens | None], length: int, spec: DecoderSpec
) -> list[Patch]:
    """The patches of an edit, in order.

    Args:
        spans: first token, and the token behind the last one, of every span.
        replacements: what comes in the place of each; ``None`` means as many masks.
        length: tokens of the text.
        spec: the model's shape.

    Raises:
        RegionError: there is no span, one is out of range, spans overlap, or one selects nothing and puts nothing in.
    """
    if not spans:
        raise RegionError("Expected at least one span, got none. Give spans=[(start, end)].")
    found = []
    for (start, end), given in zip(spans, replacements, strict=True):
        if not (is_index(start) and is_index(end) and 0 <= start <= end <= length):
            raise RegionError(
                f"Expected spans within the text's {length} tokens, start before end, got ({start!r}, {end!r}). Spans "
                "are counted from the prompt's first token; characters=... takes places in the text."
            )
        tokens = np.full(end - start, spec.mask_id) if given is None else given
        if start == end and not len(tokens):
            raise RegionError(f"Expected the span ({start}, {end}) to select or to put in something. Make it longer.")
        found.append(Patch(int(start), int(end), tokens))
    found.sort(key=lambda patch: (patch.start, patch.end))
    for before, after in pairwise(found):
        if after.start < before.end or (before.start, before.end) == (after.start, after.end):
            raise RegionError(
                f"Expected spans that do not overlap, got ({before.start}, {before.end}) and ({after.start}, "
                f"{after.end}). Join them, or edit one after the other."
            )
    return found


def replacement_tokens(given: Masks | Sequence[int], spec: DecoderSpec) -> Tokens:
    """The tokens of a replacement.

    Raises:
        FeedError: the ids hold the mask, or one that the model does not have.
        RegionError: the number of masks is negative.
    """
    if isinstance(given, Masks):
        if not is_index(given.count) or given.count < 0:
            raise RegionError(f"Expected the number of new tokens to be at least 0, got {given.count!r}.")
        return np.full(given.count, spec.mask_id)
    return check_tokens(list(given), spec.vocabulary, spec.mask_id, "the replacement")


def put_in(padded: Tokens, length: int, prompt: int, changes: Sequence[Patch], spec: DecoderSpec) -> Draft:
    """The text with its patches in place.

    Args:
        padded: its tokens to the end of the last block.
        length: how many of them belong to the text.
        prompt: how many are the prompt.
        changes: the patches, in order.
        spec: the model's shape.

    Raises:
        RegionError: nothing would be left, or more than the model's longest text.
    """
    parts, at, touched = [], 0, Touched(spec.block)
    for patch in changes:
        parts.append(padded[at : patch.start])
        here = sum(map(len, parts))
        parts.append(patch.tokens)
        touched.add(here, here + max(len(patch.tokens), 1))
        at = patch.end
    moved = next((patch.start for patch in changes if patch.shift), None)
    # What was behind the end of the text stays there only if it stays in its block.
    parts.append(padded[at:] if moved is None else padded[at:length])
    tokens = np.concatenate(parts)
    new_length = length + sum(patch.shift for patch in changes)
    limit = spec.positions // spec.block * spec.block
    if not 0 < new_length <= limit:
        raise RegionError(f"Expected a text of 1 to {limit} tokens after the edit, got {new_length}. Change the spans.")
    tokens = np.concatenate((tokens, np.full(-len(tokens) % spec.block, spec.eos_id)))
    touched.forget_from(len(tokens))
    return Draft(tokens, new_length, _moved(prompt, changes), touched.blocks, moved)


class Touched:
    """Blocks that something is in."""

    def __init__(self, block: int) -> None:
        self._block = block
        self.blocks: frozenset[int] = frozenset()

    def add(self, start: int, end: int) -> None:
        """Adds the blocks of a span."""
        self.blocks |= frozenset(range(start // self._block, -(-end // self._block)))

    def forget_from(self, end: int) -> None:
        """Leaves out blocks that begin behind an end."""
        self.blocks = frozenset(block for block in self.blocks if block * self._block < end)


def _moved(position: int, changes: Sequence[Patch]) -> int:
    """Where a border between tokens is after the patches; inside a span, as far into what comes in its place."""
    moved = position
    for patch in changes:
        if patch.end <= position:
            moved += patch.shift
        elif patch.start < position:
            moved += min(position - patch.start, len(patch.tokens)) - (position - patch.start)
    return moved


def is_index(value: object) -> bool:
    """Whether something counts tokens or characters."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
