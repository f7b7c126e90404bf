"""GroupNorm moments of drop-in edits that nobody chose."""

from __future__ import annotations

from typing import Any

import numpy as np

import retouch


def test_edits_take_the_moments_that_generated_images_want(exported_tiny_pipeline: Any, box: np.ndarray) -> None:
    root = exported_tiny_pipeline(1)
    latents, text = (np.full(shape, 0.5, np.float32) for shape in ((1, 4, 8, 8), (1, 8, 8)))
    time = {"timestep": np.array(500, np.int64)}
    expected = {
        "unet": ("corrected", {"sample": latents, "encoder_hidden_states": text}),
        "vae_decoder": ("cached", {"latent_sample": latents}),
    }
    for part, (moments, feeds) in expected.items():
        session = retouch.InferenceSession(root / part / "model.onnx", providers=["CPUExecutionProvider"])
        base = {**feeds, **{i.name: time[i.name].reshape(i.shape) for i in session.get_inputs() if i.name in time}}
        with session.record() as recording:
            session.run(None, base)
        with session.edit(recording, box) as editing:
            session.run(None, {name: value * 2 if name in feeds else value for name, value in base.items()})
        assert editing.reports[0].group_norm == moments
