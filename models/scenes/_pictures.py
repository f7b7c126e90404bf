"""Pictures for the model card: samples, and how the losses fell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from retouch.models.scenes._trial import Trial

__all__ = ["draw_progress", "draw_samples"]

_COLUMNS = 6
_ROWS = 4
_WIDTH = 24  # characters of a line of a caption


def draw_samples(path: Path, trial: Trial) -> None:
    """Writes a sheet of the first images with their captions; captions of images that differ are red."""
    import textwrap

    from matplotlib.figure import Figure

    figure = Figure(figsize=(2 * _COLUMNS, 2.6 * _ROWS), dpi=60, layout="constrained")
    axes = figure.subplots(_ROWS, _COLUMNS).flat
    for place, wanted, image, got in zip(axes, trial.wanted, trial.images, trial.got, strict=False):
        place.imshow(image, interpolation="nearest")
        place.set_axis_off()
        colour = "black" if _same(wanted.caption, got.caption) else "firebrick"
        place.set_title("\n".join(textwrap.wrap(wanted.caption, _WIDTH)), fontsize=6, color=colour)
    figure.savefig(path)


def draw_progress(path: Path, work: Path) -> None:
    """Writes the denoiser's smoothed loss and the accuracy of its checks over the steps of a training folder."""
    from matplotlib.figure import Figure

    losses = np.array(_lines(work / "denoiser" / "log.jsonl"))
    checks = np.array(_lines(work / "accuracy.jsonl")).reshape(-1, 2)
    figure = Figure(figsize=(7, 3), dpi=90, layout="constrained")
    axis = figure.subplots()
    window = min(50, len(losses))
    axis.semilogy(losses[window - 1 :, 0], np.convolve(losses[:, 1], np.ones(window) / window, "valid"))
    axis.set(xlabel="step", ylabel=f"loss, mean of {window} steps")
    other = axis.twinx()
    other.plot(checks[:, 0], 100 * checks[:, 1], "o-", color="tab:orange")
    other.set(ylabel="attributes right (%)", ylim=(0, 100))
    figure.savefig(path)


def _same(one: str, other: str) -> bool:
    return sorted(one.split(", ")) == sorted(other.split(", "))


def _lines(path: Path) -> list[list[float]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
