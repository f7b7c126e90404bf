"""``retouch run``: a base run, recorded into a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retouch.bundle import Bundle
from retouch.cli._feeds import INPUT_HELP, RANGE_HELP, read_feeds
from retouch.cli._images import Range, write_previews
from retouch.cli._steps import Steps, progress_console
from retouch.session import ENGINES, EditSession, GroupNormMode, Run
from retouch.states import check_run_target, read_record

THREADS_HELP = "Threads; by default the engine's choice."
ENGINE_HELP = f"What runs the graphs: {', '.join(ENGINES)}; all but the first run what `retouch build` built."
WEIGHTS_HELP = "How edits keep weights; shorter ones make small edits faster, and the report says what that errs."
GROUP_NORM_HELP = "GroupNorm moments: the base run's, corrected by the edit, or those that are expected to err less."


def run(
    bundle: Annotated[Path, typer.Argument(help="Directory of the bundle.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Run directory to write; a run that is there is replaced.")
    ],
    feeds: Annotated[list[str], typer.Option("--input", "-i", help=INPUT_HELP)],
    group_norm: Annotated[
        GroupNormMode,
        typer.Option(help="What edits may ask for: 'cached' keeps less; 'auto' and 'corrected' serve all modes."),
    ] = "auto",
    png_range: Annotated[str, typer.Option(metavar="BLACK,WHITE", help=RANGE_HELP)] = "-1,1",
    threads: Annotated[int | None, typer.Option(min=1, help=THREADS_HELP)] = None,
    engine: Annotated[str, typer.Option(help=ENGINE_HELP)] = ENGINES[0],
) -> None:
    """Runs the full model once and keeps what edits need in a run directory.

    The directory holds run.json, the states and feeds as .safetensors, and the outputs as .npy with .png previews.
    """
    levels = Range.parse(png_range)
    check_run_target(output)
    with Steps() as steps:
        steps.begin("open the bundle")
        opened = Bundle.open(bundle)
        given = read_feeds(feeds, opened.manifest.inputs, levels)
        with EditSession(opened, threads=threads, group_norm=group_norm, engine=engine) as session:
            steps.begin("run the model")
            made = session.base(given)
            steps.begin("write the run")
            save_run(made, output, levels)
            size = made.bytes
    progress_console().print(f"run {made.id} in {output}, {size / 2**20:.1f} MiB of states", highlight=False)


def save_run(made: Run, output: Path, levels: Range) -> None:
    """Writes a run directory with previews of its outputs."""

    def previews(folder: Path) -> None:
        for name, file in read_record(folder).outputs.items():
            write_previews((folder / file).parent, Path(file).stem, made.outputs[name], levels)

    made.save(output, extend=previews)
