"""A loop of sliders over one image: python sliders.py DIRECTORY "a red circle" "a blue circle" STRIP.png.

The directory is what `retouch export models/scenes/pipeline -o DIRECTORY --fix batch=2` made, for example.
"""

from __future__ import annotations

import sys

import numpy as np
from PIL import Image

from retouch.sampling import PromptEdit, TextToImage

STRENGTHS = (0.2, 0.4, 0.6, 0.8, 1.0)


def main(directory: str, source: str, target: str, strip: str) -> None:
    """Writes the image and its edits side by side: every slider is the same direction, further."""
    with TextToImage(directory, threads=1) as pipeline:
        image = pipeline.generate(source, steps=10, guidance=3.0)
        region = pipeline.propose_region(image, target).region(0.5)
        direction = pipeline.direction(source, target)
        sliders = [PromptEdit(region, direction=(direction, strength)) for strength in STRENGTHS]
        edited = pipeline.edit_many(image, sliders)
        for strength, one in zip(STRENGTHS, edited, strict=True):
            moved = np.abs(one.image.astype(int) - image.image).mean()
            print(f"strength {strength}: pixels moved by {moved:.1f} on average")
    Image.fromarray(np.concatenate([image.image, *(one.image for one in edited)], axis=1)).save(strip)


if __name__ == "__main__":
    main(*sys.argv[1:])
