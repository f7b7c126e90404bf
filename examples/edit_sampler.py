"""Records the application of sampler_after.py, and edits a part of its result: python edit_sampler.py model.onnx."""

from __future__ import annotations

import sys

import numpy as np
from sampler_after import open_session, sample


def main(model: str) -> None:
    """Prints what the edit computed and what it changed."""
    session = open_session(model)
    region = np.zeros((256, 256), bool)  # of the image, which has eight pixels for every latent
    region[40:80, 40:80] = True
    with session.record() as recording:
        before = sample(session, prompt=0.5)
    with session.edit(recording, region) as editing:
        after = sample(session, prompt=-0.5)
    print(editing.reports[0])
    print(f"{recording.calls} calls, {recording.bytes / 2**20:.1f} MiB of states")
    print(f"changed: {(before != after).any((0, 1)).mean():.1%} of the latents")


if __name__ == "__main__":
    main(sys.argv[1])
