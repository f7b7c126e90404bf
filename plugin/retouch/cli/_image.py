"""``retouch image``: images of a text-to-image pipeline, edits of them, and where another prompt would change them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from retouch.cli._images import check_picture, write_heat, write_picture
from retouch.cli._regions import MASK_HELP, ROWS_HELP, RegionOptions
from retouch.cli._results import JSON_HELP, report_table, result_console, write_json
from retouch.cli._run import ENGINE_HELP, GROUP_NORM_HELP, THREADS_HELP
from retouch.cli._steps import Steps, progress_console
from retouch.errors import RegionError
from retouch.region import POLICIES, Region
from retouch.sampling import (
    Generation,
    MissingStates,
    Recording,
    TextToImage,
    check_generation_target,
    progress_bar,
    read_generation_record,
)
from retouch.session import ENGINES, GroupNormMode

image = typer.Typer(
    help="Images by a text-to-image pipeline: make one, edit parts of it by another prompt.", no_args_is_help=True
)

_REGION_HELP = "box:Y0,X0,Y1,X1 in pixels (rows before columns; Y1 and X1 are excluded) or full. May be repeated."
_THRESHOLD_HELP = "Heat, between 0 and 1, above which positions belong to the proposed region."

Base = Annotated[Path, typer.Argument(metavar="IMAGE_DIR", help="Directory that `generate` or `edit --commit` wrote.")]
Prompt = Annotated[str, typer.Option("--prompt", "-p", help="What is asked for.")]
Moved = Annotated[Path | None, typer.Option("--pipeline", help="Where the pipeline is, if not where the image says.")]
Threads = Annotated[int | None, typer.Option(min=1, help=THREADS_HELP)]
Engine = Annotated[str, typer.Option(help=ENGINE_HELP)]
Moments = Annotated[GroupNormMode | None, typer.Option(help=f"{GROUP_NORM_HELP} By default as the bundle is best.")]
Threshold = Annotated[float, typer.Option(min=0, max=1, help=_THRESHOLD_HELP)]
Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)]


@image.command()
def generate(
    pipeline: Annotated[Path, typer.Argument(help="Directory that `retouch export` made of a pipeline.")],
    prompt: Prompt,
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory for the image and its states.")],
    negative: Annotated[str, typer.Option(help="What guidance leads away from.")] = "",
    steps: Annotated[int, typer.Option(min=1, help="Number of steps.")] = 20,
    guidance: Annotated[float, typer.Option(help="Scale of guidance; at most 1 switches it off.")] = 7.5,
    seed: Annotated[int, typer.Option(help="Seed of all noise.")] = 0,
    scheduler: Annotated[
        str | None, typer.Option(help="A scheduler of diffusers by name, with the options of the pipeline's own.")
    ] = None,
    stride: Annotated[int, typer.Option(min=1, help="Keep the states of every so many steps.")] = 1,
    last: Annotated[int | None, typer.Option(min=1, help="Keep those of so many of the last steps only.")] = None,
    group_norm: Moments = None,
    threads: Threads = None,
    engine: Engine = ENGINES[0],
) -> None:
    """Makes an image of a prompt, and keeps what edits need in a directory: image.png, image.npy and the states."""
    check_generation_target(output)
    with TextToImage(pipeline, threads=threads, scheduler=scheduler, group_norm=group_norm, engine=engine) as opened:
        with progress_bar("generate") as callback:
            made = opened.generate(
                prompt,
                negative,
                steps=steps,
                guidance=guidance,
                seed=seed,
                recording=Recording(stride, last),
                callback=callback,
            )
        _save(made, output)


@image.command()
def edit(
    base: Base,
    prompt: Prompt,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.png", help="The edited image.")],
    region: Annotated[list[str] | None, typer.Option(help=_REGION_HELP)] = None,
    mask: Annotated[Path | None, typer.Option(help=MASK_HELP)] = None,
    rows: Annotated[str | None, typer.Option(help=ROWS_HELP)] = None,
    propose: Annotated[
        bool, typer.Option("--propose", help="Take the region where the prompts predict something else.")
    ] = False,
    threshold: Threshold = 0.5,
    policy: Annotated[str | None, typer.Option(help=f"How far around to compute: {', '.join(POLICIES)}.")] = None,
    strength: Annotated[float, typer.Option(help="Share of the steps that is computed, the last ones.")] = 1.0,
    seed: Annotated[int | None, typer.Option(help="Seed of other noise inside; by default the image's noise.")] = None,
    recompute: Annotated[bool, typer.Option("--recompute", help="Make full runs where states were not kept.")] = False,
    commit: Annotated[Path | None, typer.Option(metavar="NEW_DIR", help="Keep the edit for further edits.")] = None,
    pipeline: Moved = None,
    group_norm: Moments = None,
    threads: Threads = None,
    engine: Engine = ENGINES[0],
    json_file: Json = None,
) -> None:
    """Gives an image something else inside a region, for the price of the region."""
    masked = bool(region) or mask is not None or rows is not None
    if masked == propose:
        raise RegionError("Expected a region, or --propose, and not both: give one of --region, --mask, --rows.")
    check_picture(output)
    if commit is not None:
        check_generation_target(commit)
    with _open(base, pipeline, threads, group_norm, engine) as opened:
        loaded = _loaded(opened, base)
        if propose:
            where = opened.propose_region(loaded, prompt).region(threshold, policy or "balanced")
        else:
            where = RegionOptions(region or [], mask, rows, policy or "balanced", None).region(opened.image_shape)
        with progress_bar("edit") as callback:
            edited = opened.edit(
                loaded,
                where,
                prompt,
                seed=seed,
                strength=strength,
                record=commit is not None,
                missing=MissingStates.RECOMPUTE if recompute else MissingStates.ERROR,
                callback=callback,
            )
        write_picture(output, edited.image)
        if commit is not None:
            _save(edited, commit)
    _tell(edited, where, json_file)


@image.command()
def propose(
    base: Base,
    prompt: Prompt,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MASK.png", help="The mask, to edit and pass on.")],
    heat: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Also how much each position changes.")] = None,
    threshold: Threshold = 0.5,
    pipeline: Moved = None,
    threads: Threads = None,
    engine: Engine = ENGINES[0],
) -> None:
    """Writes where another prompt would change an image, as a mask for `retouch image edit --mask`."""
    for picture in filter(None, (output, heat)):
        check_picture(picture)
    with _open(base, pipeline, threads, None, engine) as opened:
        loaded = _loaded(opened, base)
        with Steps() as steps:
            steps.begin("compare predictions")
            proposal = opened.propose_region(loaded, prompt)
        region = proposal.region(threshold).resampled(opened.image_shape)
        write_heat(output, region.mask.astype("float32"))
        if heat is not None:
            write_heat(heat, proposal.heat, opened.image_shape)
    progress_console().print(f"{region.area:.1%} of the image in {output}", highlight=False)


def _open(
    base: Path, pipeline: Path | None, threads: int | None, group_norm: GroupNormMode | None, engine: str
) -> TextToImage:
    record = read_generation_record(base)
    where = pipeline or record.pipeline_path(base)
    return TextToImage(where, threads=threads, scheduler=record.scheduler, group_norm=group_norm, engine=engine)


def _loaded(opened: TextToImage, base: Path) -> Generation:
    with Steps() as steps:
        steps.begin("load the image")
        return opened.load(base)


def _save(made: Generation, output: Path) -> None:
    with Steps() as steps:
        steps.begin("write the states")
        made.save(output, extend=lambda folder: write_picture(folder / "image.png", made.image))
    progress_console().print(f"image in {output}, {made.bytes / 2**20:.1f} MiB of states", highlight=False)


def _tell(edited: Generation, region: Region, json_file: str | None) -> None:
    report = edited.report
    assert report is not None, "an edit has one"
    sampling = report.sampling
    figures: dict[str, Any] = {
        "area": region.area,
        "flop_ratio": sampling.flop_ratio,
        "start": sampling.start,
        "staleness": sampling.staleness,
        "recomputed": sampling.recomputed,
        "seconds": sampling.seconds + report.decoding.seconds.total,
        "decoding": dataclasses.asdict(report.decoding),
    }
    write_json(json_file, figures)
    result_console(json_file).print(report_table(report, area=f"{region.area:.2%}"))
