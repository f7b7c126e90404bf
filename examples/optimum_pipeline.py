"""Edits with a Stable Diffusion pipeline of optimum-onnx: python optimum_pipeline.py DIRECTORY BEFORE.png AFTER.png.

The directory is what `retouch export` made of a pipeline of diffusers (`--fix batch=2`, for guidance).
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from optimum.onnxruntime import ORTStableDiffusionPipeline

import retouch


def main(directory: str, before: str, after: str) -> None:
    """Paints a picture, then another prompt into a quarter of it."""
    pipeline = ORTStableDiffusionPipeline.from_pretrained(directory, local_files_only=True)
    height, width = (pipeline.vae_scale_factor * size for size in pipeline.unet.input_shapes["sample"][2:])

    def paint(prompt: str):  # noqa: ANN202 # a picture of pillow
        generator = torch.Generator().manual_seed(0)
        return pipeline(prompt, height=height, width=width, num_inference_steps=10, generator=generator).images[0]

    with retouch.attach(pipeline) as attached:
        with attached.record():
            picture = paint("a lake")
        region = np.zeros((picture.height, picture.width), bool)
        region[: picture.height // 2, : picture.width // 2] = True
        with attached.edit(region) as editing:
            edited = paint("a hut")
    picture.save(before)
    edited.save(after)
    print(editing.reports["unet"][0])


if __name__ == "__main__":
    main(*sys.argv[1:])
