"""Runs the study: ``python -m retouch.validation.moments --out DIR``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from retouch.bundle import Bundle
from retouch.export import export_onnx
from retouch.validation.moments import (
    SUBJECTS,
    Sample,
    Study,
    Subject,
    Timing,
    calibrate_subject,
    draw,
    figures,
    page,
    run_study,
    time_modes,
)
from retouch.validation.moments._table import error_table, estimate_table, time_table

_Times = Annotated[bool, typer.Option("--times/--no-times", help="Time the modes; needs a quiet machine.")]
_Errors = Annotated[bool, typer.Option("--errors/--no-errors", help="Measure what the modes err; may run beside work.")]


def main(
    out: Annotated[Path, typer.Option(help="Where bundles, samples and the picture go.")] = Path("out/norm-study"),
    models: Annotated[Path, typer.Option(help="Where reference models are exported to.")] = Path("build/models"),
    write: Annotated[Path | None, typer.Option(help="A page whose tables are replaced, the picture beside it.")] = None,
    examples: Annotated[int, typer.Option(min=5, help="Base runs to calibrate with.")] = 30,
    bases: Annotated[int, typer.Option(min=1, help="Base runs to edit.")] = 6,
    threads: Annotated[int, typer.Option(min=1, help="Threads of ONNX Runtime.")] = 2,
    errors: _Errors = True,
    times: _Times = True,
) -> None:
    """Errors of edits with cached, corrected and automatically chosen GroupNorm moments."""
    out.mkdir(parents=True, exist_ok=True)
    study = Study(examples, bases)
    samples: list[Sample] = []
    timings: list[Timing] = []
    correlations = {}
    for subject in SUBJECTS.values():
        bundle = _calibrated(subject, study, out / subject.name, models, threads)
        assert bundle.manifest.moments is not None, "it was calibrated just now"
        correlations[subject.name] = bundle.manifest.moments.correlation
        typer.echo(f"{subject.name}: edits")
        samples += run_study(bundle, subject, study, threads=threads) if errors else []
        timings += time_modes(bundle, subject, study) if times else []
    _write(out, write, samples, timings, correlations)


def _calibrated(subject: Subject, study: Study, folder: Path, models: Path, threads: int) -> Bundle:
    bundle = Bundle.open(folder) if folder.exists() else export_onnx(subject.model(models), folder)
    spec = bundle.manifest.moments
    if spec is None:
        calibrate_subject(bundle, subject, study, threads=threads, progress=typer.echo)
    return Bundle.open(folder)


def _write(
    out: Path,
    write: Path | None,
    samples: Sequence[Sample],
    timings: Sequence[Timing],
    correlations: Mapping[str, float],
) -> None:
    blocks = {}
    if samples:
        blocks = {"errors": error_table(figures(samples)), "estimates": estimate_table(samples, correlations)}
        (out / "errors.json").write_text(json.dumps([asdict(one) for one in samples], indent=1))
        for path in (out / "group-norm.png", *([] if write is None else [write.with_suffix(".png")])):
            draw(path, samples)
    if timings:
        blocks["times"] = time_table(timings)
        (out / "times.json").write_text(json.dumps([asdict(one) for one in timings], indent=1))
    typer.echo("\n\n".join(blocks.values()))
    if write is not None:
        write.write_text(page(write.read_text(encoding="utf-8"), blocks), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
