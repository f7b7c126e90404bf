"""Latents to pixels: a decoder's session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.region import Region
from retouch.sampling._generation import Image
from retouch.session import EditSession, Report, Run


@dataclass(frozen=True)
class Decoder:
    """A session on the bundle of an autoencoder's decoder.

    Attributes:
        session: the session.
        scale: what latents are divided by before they are decoded.
        shift: what is added to them then.
    """

    session: EditSession
    scale: float
    shift: float

    def image_shape(self) -> tuple[int, int]:
        """Height and width of the images."""
        height, width = self.session.bundle.manifest.outputs[0].tensor.shape[2:]
        return height, width

    def decode(self, latents: NDArray[Any], *, record: bool) -> tuple[Image, Run | None]:
        """The image of latents in full, and its run if wanted."""
        run = self.session.base(self._feeds(latents), record=record)
        if not record:
            run.close()
        return self._image(run.outputs), run if record else None

    def decode_edit(
        self, base: Run, latents: NDArray[Any], region: Region, *, record: bool
    ) -> tuple[Image, Report, Run | None]:
        """The image of latents that differ from a run's inside a region, how it came about, and its run if wanted.

        The image is that run's, bit for bit, outside the region and the rows around it that its policy computes.
        """
        result = self.session.edit(base, self._feeds(latents), region=region, record=record)
        return self._image(result.outputs), result.report, result.commit() if record else None

    def _feeds(self, latents: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {self.session.bundle.manifest.editable.input: latents / np.float32(self.scale) + np.float32(self.shift)}

    def _image(self, outputs: Any) -> Image:  # noqa: ANN401
        pixels = outputs[self.session.bundle.manifest.outputs[0].tensor.name][0]
        image: Image = np.round(np.clip(pixels / 2 + 0.5, 0, 1).transpose(1, 2, 0) * 255).astype(np.uint8)
        image.setflags(write=False)
        return image
