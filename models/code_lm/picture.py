"""Draws how losses fell: ``python -m retouch.models.code_lm.picture patterns=build/code_lm -o training.png``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from retouch.errors import ModelError

__all__ = ["draw_losses", "main"]

_WINDOW = 25  # steps whose mean is shown


def main(
    courses: Annotated[list[str], typer.Argument(metavar="NAME=FOLDER...", help="Folders of trainings (--work).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture.")] = Path("training.png"),
) -> None:
    """Draws the losses of trainings over their CPU time."""
    named = [course.partition("=") for course in courses]
    if not all(equals and name for name, equals, _ in named):
        raise ModelError(f"Expected NAME=FOLDER, got {' '.join(courses)}. Give every training a name.")
    draw_losses(output, {name: Path(folder) for name, _, folder in named})


def draw_losses(path: Path, courses: dict[str, Path]) -> None:
    """Writes a picture with one plot per training: every kind of loss, smoothed, over CPU minutes.

    Raises:
        ModelError: a folder has no log.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6 * len(courses), 3), dpi=90, layout="constrained")
    for axis, (name, folder) in zip(figure.subplots(1, len(courses), squeeze=False)[0], courses.items(), strict=True):
        entries = _entries(folder)
        minutes = np.array([entry["seconds"] for entry in entries]) / 60
        window = min(_WINDOW, len(entries))
        for kind in [kind for kind in entries[0] if kind not in {"step", "seconds"}]:
            losses = np.array([entry[kind] for entry in entries])
            axis.plot(minutes[window - 1 :], np.convolve(losses, np.ones(window) / window, "valid"), label=kind)
        axis.set(title=name, xlabel="CPU minutes", ylabel=f"nats a token, mean of {window} steps", ylim=(0, None))
        axis.legend()
    figure.savefig(path)


def _entries(folder: Path) -> list[dict[str, float]]:
    log = folder / "log.jsonl"
    if not log.is_file():
        raise ModelError(
            f"Expected the folder of a training, but {folder} has no {log.name}. Give --work of a training."
        )
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    typer.run(main)
