"""A generated image, with what it takes to edit it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retouch.sampling._save_generation import save_generation
from retouch.sampling._trajectory import Trajectory, TrajectoryReport
from retouch.session import Report, Run

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class GenerationReport:
    """What an edit of an image says about itself.

    Attributes:
        sampling: how the latents came about.
        decoding: how the image came about.
    """

    sampling: TrajectoryReport
    decoding: Report

    def __str__(self) -> str:
        return f"{self.sampling}\n{'decoding':<12} {self.decoding.path} ({self.decoding.reason})"


@dataclass(frozen=True, eq=False)
class Generation:
    """A generated image, with what it takes to edit it. Undoing an edit is going back to its ``base``.

    Attributes:
        image: [height, width, 3], 0 to 255 (read-only).
        prompt: what was asked for; of an edit, inside its region.
        negative_prompt: what guidance led away from.
        trajectory: the latents, step by step.
        base: the generation that it is an edit of, or ``None``.
        report: how that edit came about.
        decoded: the decoder's run, for the next edit's decoding; ``None`` if it was not recorded.
    """

    image: Image = field(repr=False)
    prompt: str
    negative_prompt: str
    trajectory: Trajectory = field(repr=False)
    base: Generation | None = field(default=None, repr=False)
    report: GenerationReport | None = field(default=None, repr=False)
    decoded: Run | None = field(default=None, repr=False)

    @property
    def bytes(self) -> int:
        """The size of the states that are kept, the decoder's included."""
        decoded = self.decoded.bytes if self.decoded is not None and self.decoded.kept else 0
        return self.trajectory.bytes + decoded

    def save(self, path: str | os.PathLike[str], *, extend: Callable[[Path], None] | None = None) -> None:
        """Write the generation and its states into a directory, in one step, for :meth:`TextToImage.load`.

        Args:
            path: the directory; that of a generation is replaced.
            extend: called with the directory before it is put in place, to put further files into it.

        Raises:
            RunError: it was not recorded, or its states are gone.
            RunFileError: it cannot be written, or the directory holds something else.
        """
        save_generation(self, Path(path), extend)

    def close(self) -> None:
        """Drop the states that this generation made; those of its base stay. Doing it twice is fine."""
        self.trajectory.close()
        if self.decoded is not None:
            self.decoded.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
