"""Texts as one long row of tokens, and windows of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retouch.tokens import Tokenizer

if TYPE_CHECKING:
    import torch

__all__ = ["Corpus"]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts one after the other, each with the end token behind it.

    Attributes:
        ids: tokens [N].
        vocabulary: number of token ids.
        characters: length of the texts, an end token counted as one character.
        begins: where windows may begin [M]; ``None`` means anywhere.
    """

    ids: NDArray[np.uint16]
    vocabulary: int
    characters: int
    begins: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, texts: Iterable[str], tokenizer: Tokenizer, *, whole: bool = False) -> Corpus:
        """The corpus of some texts; ``whole`` lets windows begin only where texts do."""
        ids: list[int] = []
        begins: list[int] = []
        characters = 0
        for text in texts:
            begins.append(len(ids))
            ids += [*tokenizer.encode(text), tokenizer.eos_id]
            characters += len(text) + 1
        return cls(np.array(ids, np.uint16), tokenizer.vocabulary, characters, np.array(begins) if whole else None)

    def windows(self, count: int, length: int, generator: torch.Generator) -> torch.Tensor:
        """Windows at random places, [count, length]."""
        import torch

        last = len(self.ids) - length
        starts = torch.randint(last + 1, (count,), generator=generator).numpy()
        if self.begins is not None:
            choices = self.begins[self.begins <= last]
            starts = choices[torch.randint(len(choices), (count,), generator=generator).numpy()]
        return torch.from_numpy(np.stack([self.ids[at : at + length] for at in starts]).astype(np.int64))

    def shares(self) -> torch.Tensor:
        """How often every token occurs, [vocabulary]; one that does not occur counts once."""
        import torch

        counts = np.bincount(self.ids, minlength=self.vocabulary) + 1.0
        return torch.from_numpy(counts / counts.sum()).float()
