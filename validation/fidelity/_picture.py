"""What makes an edit hard, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retouch.validation.fidelity._study import Sample, Study

_MARKS = {"cached": "o", "corrected": "^"}


def draw_shift(path: Path, study: Study, samples: Sequence[Sample], *, policy: str = "balanced") -> None:
    """Writes one panel per noise level: PSNR inside over the shift of the patch's mean height."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(study.sigmas), figsize=(12, 3.8), layout="constrained", sharey=True)
    for panel, sigma in zip(panels, study.sigmas, strict=True):
        for mode, mark in _MARKS.items():
            own = [s for s in samples if (s.sigma, s.policy, s.group_norm) == (sigma, policy, mode)]
            panel.scatter([abs(s.shift) for s in own], [s.psnr.inside for s in own], s=18, marker=mark, label=mode)
        panel.set_title(f"sigma {sigma}")
        panel.set_xlabel("shift of the patch's mean height (range 2)")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("PSNR inside, dB")
    panels[0].legend(title="moments")
    figure.savefig(path, dpi=80)
    plt.close(figure)
