"""What an edit of an image asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retouch.errors import RegionError
from retouch.region import Region, RegionPolicy
from retouch.sampling._conditions import Conditions
from retouch.sampling._direction import Direction


@dataclass(frozen=True, eq=False)
class PromptEdit:
    """An edit of an image.

    Attributes:
        region: where: a region or boolean mask of the image's pixels, or of the latents.
        prompt: what is asked for inside; ``None`` means what the base was asked for.
        direction: a direction along which that is moved, and how far; see :meth:`TextToImage.direction`.
        seed: seed of other noise inside; ``None`` means the base's noise.
    """

    region: Region | NDArray[np.bool_]
    prompt: str | None = None
    direction: tuple[Direction, float] | None = None
    seed: int | None = None

    def on_latents(self, image: tuple[int, ...], latents: tuple[int, ...], policy: str | RegionPolicy | None) -> Region:
        """The region on the grid of the latents.

        Args:
            image: height and width of the image.
            latents: those of the latents.
            policy: the region's policy; ``None`` means its own, for a mask the default.

        Raises:
            RegionError: the region has another resolution than both.
        """
        own = self.region if isinstance(self.region, Region) else Region.from_mask(self.region)
        if own.mask.shape not in (image, latents):
            raise RegionError(
                f"Expected a region of the image, {image}, or of the latents, {latents}, got one of {own.mask.shape}. "
                f"Bring it there with region.resampled({image})."
            )
        moved = own if own.mask.shape == latents else own.resampled(latents)
        return moved if policy is None else Region.from_mask(moved.mask, policy)

    def conditions(self, base: Conditions, text: str, encode: Callable[[str], NDArray[np.float32]]) -> Conditions:
        """What is asked for inside; the base's conditions themselves if the edit changes none.

        Args:
            base: the base's conditions.
            text: the input that takes a prompt's embeddings.
            encode: makes them.
        """
        asked = base
        if self.prompt is not None:
            asked = Conditions({**base.positive, text: encode(self.prompt)}, base.negative, base.guidance)
        if self.direction is not None:
            direction, strength = self.direction
            asked = direction.at(asked, strength)
        return asked
