"""``retouch edit``: an edit of a recorded run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated, Any

import typer

from retouch.bundle import Bundle, Manifest
from retouch.cli._feeds import INPUT_HELP, RANGE_HELP, read_feeds
from retouch.cli._images import Range
from retouch.cli._regions import MASK_HELP, REGION_HELP, ROWS_HELP, RegionOptions
from retouch.cli._results import JSON_HELP, output_stems, report_table, result_console, write_json, write_outputs
from retouch.cli._run import ENGINE_HELP, GROUP_NORM_HELP, THREADS_HELP, WEIGHTS_HELP, save_run
from retouch.cli._steps import Steps
from retouch.errors import ResultFileError, RunFileError
from retouch.files import Kind, StagedDirectory
from retouch.region import POLICIES
from retouch.sampling import GENERATION_FILE
from retouch.session import ENGINES, EditSession, GroupNormMode, Report, WeightStorage
from retouch.states import check_run_target, read_record

REPORT_FILE = "report.json"


def _result_of(manifest: Manifest) -> Kind:
    """A result directory of that model, with none of the user's own files in it."""
    stems = output_stems(output.tensor.name for output in manifest.outputs)
    needed = {REPORT_FILE, *(f"{stem}.npy" for stem in stems)}
    files = re.compile(f"{re.escape(REPORT_FILE)}|({'|'.join(stems)})(\\.npy|(\\.\\d+)?\\.png)")

    def recognise(names: AbstractSet[str]) -> bool:
        return needed <= names and all(map(files.fullmatch, names))

    return Kind("a result directory", recognise, ResultFileError)


@dataclasses.dataclass(frozen=True)
class _Task:
    run: Path
    bundle: Path | None
    feeds: list[str]
    region: RegionOptions
    group_norm: GroupNormMode
    fallback: bool
    threads: int | None
    engine: str
    weights: WeightStorage
    output: Path
    commit: Path | None
    levels: Range


def edit(
    run: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Directory that `retouch run` wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory for the outputs and report.json.")],
    feeds: Annotated[
        list[str] | None, typer.Option("--input", "-i", help=f"{INPUT_HELP} Others stay the run's.")
    ] = None,
    region: Annotated[list[str] | None, typer.Option(help=REGION_HELP)] = None,
    mask: Annotated[Path | None, typer.Option(help=MASK_HELP)] = None,
    rows: Annotated[str | None, typer.Option(help=ROWS_HELP)] = None,
    policy: Annotated[str, typer.Option(help=f"How far around to compute: {', '.join(POLICIES)}.")] = "balanced",
    dilate: Annotated[
        int | None, typer.Option(min=0, help="Positions to grow the region by, not the policy's.")
    ] = None,
    group_norm: Annotated[GroupNormMode, typer.Option(help=GROUP_NORM_HELP)] = "auto",
    fallback: Annotated[bool, typer.Option(help="Allow a full run where it was measured to be faster.")] = True,
    bundle: Annotated[Path | None, typer.Option(help="Where the bundle is, if not where the run says.")] = None,
    commit: Annotated[Path | None, typer.Option(metavar="NEW_RUN_DIR", help="Keep the edit as the next run.")] = None,
    png_range: Annotated[str, typer.Option(metavar="BLACK,WHITE", help=RANGE_HELP)] = "-1,1",
    threads: Annotated[int | None, typer.Option(min=1, help=THREADS_HELP)] = None,
    engine: Annotated[str, typer.Option(help=ENGINE_HELP)] = ENGINES[0],
    weights: Annotated[WeightStorage, typer.Option(help=WEIGHTS_HELP)] = WeightStorage.FLOAT32,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Computes what changes in a recorded run when feeds change inside a region."""
    if (run / GENERATION_FILE).is_file():
        raise RunFileError(
            f"Expected a run of one model, got {run}, which holds an image of a pipeline. Use `retouch image edit`."
        )
    options = RegionOptions(region or [], mask, rows, policy, dilate)
    levels = Range.parse(png_range)
    modes = (group_norm, fallback, threads, engine, weights)
    task = _Task(run, bundle, feeds or [], options, *modes, output, commit, levels)
    with Steps() as steps:
        report = _carry_out(task, steps)
    write_json(json_file, _json(task, report))
    result_console(json_file).print(report_table(report))


def _carry_out(task: _Task, steps: Steps) -> Report:
    steps.begin("open the bundle")
    bundle = Bundle.open(task.bundle or read_record(task.run).bundle_path(task.run))
    manifest = bundle.manifest
    feeds = read_feeds(task.feeds, manifest.inputs, task.levels)
    region = task.region.region(manifest.grid(manifest.editable.grid).dims)
    StagedDirectory(task.output, _result_of(manifest)).check_replaceable()
    if task.commit is not None:
        check_run_target(task.commit)
    with EditSession(
        bundle, threads=task.threads, group_norm=task.group_norm, engine=task.engine, weights=task.weights
    ) as session:
        steps.begin("load the run")
        run = session.load_run(task.run)
        # So that the time that is reported is the edit's, as it is in a session that lives longer.
        steps.begin("load the graphs")
        session.preload(base=False, record=task.commit is not None)
        steps.begin("edit")
        result = session.edit(run, feeds, region=region, fallback=task.fallback, record=task.commit is not None)
        steps.begin("write the outputs")
        with StagedDirectory(task.output, _result_of(manifest)) as staged:
            write_outputs(staged.path, result.outputs, task.levels)
            write_json(str(staged.path / REPORT_FILE), _json(task, result.report))
            staged.finish()
        if task.commit is not None:
            steps.begin("write the next run")
            save_run(result.commit(), task.commit, task.levels)
    return result.report


def _json(task: _Task, report: Report) -> dict[str, Any]:
    record = read_record(task.run)
    return {"run": record.run_id, "bundle": record.bundle_fingerprint, **dataclasses.asdict(report)}
