"""Trains the pipeline: ``python -m retouch.models.scenes.train --work DIR``; goes on where it was stopped."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retouch.models.scenes._assemble import write_pipeline
from retouch.models.scenes._curriculum import Schedule, Watch, train_pipeline
from retouch.models.scenes._draw import unseen_scenes
from retouch.models.scenes._pipeline import Sampling
from retouch.models.scenes._trial import try_pipeline

if TYPE_CHECKING:
    from diffusers import StableDiffusionPipeline

__all__ = ["main"]

_REPORT_EVERY = 20
_TRIED = 24  # captions of a check


def main(
    work: Annotated[Path, typer.Option(help="Where checkpoints, logs and examples lie.")] = Path("build/scenes"),
    out: Annotated[Path, typer.Option(help="Where the pipeline goes, at every check and in the end.")] = Path(
        "build/scenes/pipeline"
    ),
    steps: Annotated[int, typer.Option(min=1, help="Steps of the denoiser in all.")] = Schedule().denoiser.steps,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 2,
    check_every: Annotated[int, typer.Option(min=1, help="Steps of the denoiser between two checks.")] = 500,
) -> None:
    """Trains text encoder, autoencoder and denoiser of scenes, and writes them as a pipeline of diffusers."""
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    schedule = Schedule()
    schedule = replace(schedule, denoiser=replace(schedule.denoiser, steps=steps))
    start = time.monotonic()

    def report(course: str, step: int, loss: float) -> None:
        if step % _REPORT_EVERY == 0:
            typer.echo(f"{course} {step}: loss {loss:.4f}, {time.monotonic() - start:.0f} s")

    def check(step: int, pipeline: StableDiffusionPipeline) -> None:
        score = try_pipeline(pipeline, unseen_scenes(_TRIED), Sampling()).score
        typer.echo(f"denoiser {step}: {score.accuracy:.1%} of the attributes")
        with (work / "accuracy.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps([step, score.accuracy]) + "\n")
        write_pipeline(pipeline, out)

    write_pipeline(train_pipeline(work, schedule, Watch(report, check, check_every)), out)


if __name__ == "__main__":
    typer.run(main)
