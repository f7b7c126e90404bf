"""The same application on Retouch: only its import differs. python sampler_after.py model.onnx latents.npy."""

from __future__ import annotations

import sys

import numpy as np
import retouch as runtime


def sample(session: runtime.InferenceSession, prompt: float) -> np.ndarray:
    """The latents that ten steps make of the same noise for a prompt."""
    latents = np.random.default_rng(1).standard_normal((1, 4, 32, 32), dtype=np.float32)
    for step in range(900, -1, -100):
        feeds = {
            "sample": latents,
            "timestep": np.array([step], np.int64),
            "prompt": np.full((1, 16), prompt, np.float32),
        }
        (noise,) = session.run(["noise"], feeds)
        latents = latents - np.float32(0.1) * noise
    return latents


def open_session(model: str) -> runtime.InferenceSession:
    """The session that the application runs on."""
    return runtime.InferenceSession(model, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    np.save(sys.argv[2], sample(open_session(sys.argv[1]), prompt=0.5))
