"""What a text model needs of a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.errors import FeedError


class Tokenizer(Protocol):
    """Text to token ids and back. Two ids are no text: the mask, and the end of a text."""

    @property
    def vocabulary(self) -> int:
        """The number of ids, the special ones included."""

    @property
    def mask_id(self) -> int:
        """The id of a token that is still to be chosen."""

    @property
    def eos_id(self) -> int:
        """The id that ends a text."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text; never a special one."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What every id adds to the text; nothing for the end, one visible character for the mask."""


def check_tokens(ids: ArrayLike, vocabulary: int, mask_id: int, what: str) -> NDArray[np.int64]:
    """The ids as a new int64 array [N].

    Args:
        ids: the ids.
        vocabulary: the number of ids that the model has.
        mask_id: the id of the mask, which has no place in a text that somebody gives.
        what: what the ids are, for messages.

    Raises:
        FeedError: they are no flat list of integers, one is out of range, or one is the mask.
    """
    array = np.asarray(ids)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise FeedError(
            f"Expected {what} to be a flat list of integers, got shape {array.shape} and type {array.dtype}. "
            "Give token ids of one text, or a text."
        )
    outside = np.flatnonzero((array < 0) | (array >= vocabulary))
    if outside.size:
        raise FeedError(
            f"Expected {what} to hold ids from 0 to {vocabulary - 1}, got {array[outside[0]]} at position "
            f"{outside[0]}. The ids must come from the bundle's own tokenizer."
        )
    masks = np.flatnonzero(array == mask_id)
    if masks.size:
        raise FeedError(
            f"Expected {what} without the mask token, got it (id {mask_id}) at position {masks[0]}. It stands for a "
            "token that is still to be chosen; to have a span chosen anew, edit that span without a replacement."
        )
    return array.astype(np.int64)
