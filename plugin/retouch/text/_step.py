"""A change to a text, as callbacks are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from retouch.text._model import Tokens

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Step:
    """A change to a text, as a callback is told: to one block, or with full attention to the whole.

    Attributes:
        start: position of the first token.
        tokens: the block's tokens, or all, masks among them.
        filled: where masked tokens were set.
        edited: where tokens were replaced.
    """

    start: int
    tokens: Tokens = field(repr=False)
    filled: Mask = field(repr=False)
    edited: Mask = field(repr=False)


Callback = Callable[[Step], None]
