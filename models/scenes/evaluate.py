"""Measures the trained pipeline: ``python -m retouch.models.scenes.evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retouch.models.scenes._autoencoding import restoration_psnr
from retouch.models.scenes._draw import unseen_scenes
from retouch.models.scenes._pictures import draw_progress, draw_samples
from retouch.models.scenes._pipeline import PIPELINE, Sampling, load_pipeline
from retouch.models.scenes._scoring import Score
from retouch.models.scenes._trial import try_pipeline

__all__ = ["main"]


def main(
    pipeline: Annotated[Path, typer.Option(help="The pipeline to measure.")] = PIPELINE,
    captions: Annotated[int, typer.Option(min=1, help="How many captions, all with held-out combinations.")] = 200,
    steps: Annotated[int, typer.Option(min=1, help="DDIM steps.")] = Sampling().steps,
    guidance: Annotated[float, typer.Option(min=1, help="Weight of the guidance.")] = Sampling().guidance,
    seed: Annotated[int, typer.Option(help="Seed of the first image's noise.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 2,
    samples: Annotated[Path | None, typer.Option(help="Write a sheet of samples to this PNG.")] = None,
    work: Annotated[Path | None, typer.Option(help="The training's folder, for --progress.")] = None,
    progress: Annotated[Path | None, typer.Option(help="Write losses and checks of --work to this PNG.")] = None,
) -> None:
    """How much of unseen captions the pipeline draws, and how well its autoencoder restores scenes."""
    import torch

    torch.set_num_threads(threads)
    loaded = load_pipeline(pipeline)
    trial = try_pipeline(loaded, unseen_scenes(captions), Sampling(steps, guidance, seed))
    typer.echo(_as_text(trial.score))
    typer.echo(f"autoencoder: {restoration_psnr(loaded.vae, unseen_scenes(captions)):.1f} dB")
    if samples is not None:
        draw_samples(samples, trial)
    if work is not None and progress is not None:
        draw_progress(progress, work)


def _as_text(score: Score) -> str:
    kinds = ", ".join(f"{kind} {score.of(kind):.1%}" for kind in sorted(score.asked))
    return (
        f"{score.accuracy:.1%} of {score.asked.total()} attributes ({kinds}); "
        f"{score.extra} extra objects; {score.complete} of {score.images} scenes complete"
    )


if __name__ == "__main__":
    typer.run(main)
