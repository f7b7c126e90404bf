"""Reads blocks of one text, none of them more often than it has to be."""

from __future__ import annotations

import numpy as np

from retouch.text._model import Context, Logits, Tokens, WideningContext


class Reader:
    """Reads blocks of one text. A block that was not read as it ended is read again together with what follows it.

    Attributes:
        context: what reads.
        reads: number of reads.
        tokens: number of tokens that were read.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.reads = 0
        self.tokens = 0
        self._pending: tuple[Tokens, int] | None = None

    def read(self, tokens: Tokens, start: int) -> Logits:
        """The logits of a block's tokens."""
        pending, self._pending = self._pending, None
        if pending is not None and pending[1] + len(pending[0]) == start:
            return self._read(np.concatenate((pending[0], tokens)), pending[1])[-len(tokens) :]
        if pending is not None:
            self._read(*pending)
        return self._read(tokens, start)

    def postpone(self, tokens: Tokens, start: int) -> None:
        """Have a block read before anything else is, at the latest by :meth:`finish`."""
        pending = self._pending
        if pending is None:
            self._pending = (tokens, start)
        elif pending[1] + len(pending[0]) == start:
            self._pending = (np.concatenate((pending[0], tokens)), pending[1])
        else:
            self._read(*pending)
            self._pending = (tokens, start)

    def read_widened(self, tokens: Tokens, start: int, block: int) -> Logits:
        """The logits of several blocks' tokens that see each other. The blocks have to be read again afterwards."""
        if self._pending is not None and self._pending[1] < start:
            self.finish()
        self._pending = None
        assert isinstance(self.context, WideningContext)
        self.reads += 1
        self.tokens += len(tokens)
        return self.context.read_widened(tokens, start, block)

    def finish(self) -> Logits | None:
        """Reads what was postponed; its logits, if there was something."""
        pending, self._pending = self._pending, None
        return None if pending is None else self._read(*pending)

    def _read(self, tokens: Tokens, start: int) -> Logits:
        self.reads += 1
        self.tokens += len(tokens)
        return self.context.read(tokens, start)
