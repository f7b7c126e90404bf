"""A pipeline of optimum-onnx on stock sessions and on drop-in sessions, in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from retouch.calibrate import Sample, interleaved
from retouch.drop_in import InferenceSession
from retouch.engines.ort import load_onnxruntime, rest_between_runs

__all__ = ["Cost", "measure_cost", "open_pipeline"]

_PARTS = ("unet", "vae_decoder")


@dataclass(frozen=True)
class Cost:
    """Medians of one image.

    Attributes:
        stock: on sessions of ONNX Runtime.
        drop_in: on Retouch's, outside of recordings and edits.
        identical: whether both gave the same image, bit for bit.
    """

    stock: Sample
    drop_in: Sample
    identical: bool

    @property
    def ratio(self) -> float:
        """CPU time on drop-in sessions over that on stock ones."""
        return self.drop_in.cpu_ms / self.stock.cpu_ms


def open_pipeline(exported: Path, session: Callable[..., Any], threads: int) -> Any:  # noqa: ANN401 (optimum has no types)
    """The text-to-image pipeline of optimum on sessions of a kind.

    Args:
        exported: the exported pipeline.
        session: makes a session of a path and session options.
        threads: threads per run.
    """
    from optimum.onnxruntime import ORTStableDiffusionPipeline

    options = load_onnxruntime().SessionOptions()
    options.intra_op_num_threads = threads
    rest_between_runs(options)
    sessions = {f"{part}_session": session(str(exported / part / "model.onnx"), options) for part in _PARTS}
    pipeline = ORTStableDiffusionPipeline.from_pretrained(exported, local_files_only=True, **sessions)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def measure_cost(exported: Path, prompt: str, *, steps: int, threads: int = 1, repeats: int = 9) -> Cost:
    """What an image costs on both kinds of sessions.

    Args:
        exported: the exported pipeline.
        prompt: what is asked for.
        steps: number of steps.
        threads: threads per run.
        repeats: rounds.
    """
    kinds = {"stock": load_onnxruntime().InferenceSession, "drop_in": InferenceSession}
    paint = {
        name: partial(_paint, open_pipeline(exported, kind, threads), prompt, steps) for name, kind in kinds.items()
    }
    identical = len({run().tobytes() for run in paint.values()}) == 1
    return Cost(**interleaved(paint, repeats), identical=identical)


def _paint(pipeline: Any, prompt: str, steps: int) -> np.ndarray[Any, np.dtype[Any]]:  # noqa: ANN401
    import torch

    height, width = (pipeline.vae_scale_factor * size for size in pipeline.unet.input_shapes["sample"][2:])
    generator = torch.Generator().manual_seed(0)
    options = {"num_inference_steps": steps, "guidance_scale": 3.0, "generator": generator, "output_type": "np"}
    return np.asarray(pipeline(prompt, height=height, width=width, **options).images[0])
