"""Exports the terrain model, makes a terrain, edits it, and reports time and fidelity."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Column, Table

from retouch.calibrate import calibrate
from retouch.engines.ort import rest_between_runs
from retouch.export import ExportOptions, export_onnx
from retouch.session import EditSession, Run
from retouch.validation.demo._measure import Measured, interleaved
from retouch.validation.demo._pictures import draw
from retouch.validation.demo._scene import EditCase, Feeds, make_scene
from retouch.validation.psnr import measure_psnr
from retouch.validation.reference_models import terrain

_OUTPUT = "denoised"
_PEAK = 2.0


def main(
    out: Annotated[Path, typer.Option(help="Where the bundle, the pictures and the table go.")] = Path("out/demo"),
    threads: Annotated[int, typer.Option(help="Threads of ONNX Runtime.")] = 1,
) -> None:
    """Local edits of a generated terrain on a trained third-party model."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    stock = _stock_session(threads)

    def full(feeds: Feeds) -> NDArray[Any]:
        result: NDArray[Any] = stock.run([_OUTPUT], dict(feeds))[0]
        return result

    scene = make_scene(full)
    with console.status("export") as status:
        options = ExportOptions(example=scene.base)
        bundle = export_onnx(terrain(), out / "bundle", options, tell=lambda step: status.update(f"export: {step}"))
        calibrate(bundle, threads=threads, feeds=scene.base, progress=lambda step: status.update(f"calibrate: {step}"))
    rows = []
    with EditSession(out / "bundle", threads=threads, group_norm="cached") as session:
        base = run = session.base(scene.base)
        for number, case in enumerate(scene.edits):
            following = case.name.startswith("small patch, then")
            start = run if following else base
            rows.append(_measured(session, start, case, full, out / f"{number}.png"))
            if number == 0:
                run = session.edit(base, case.change, region=case.region, record=True).commit()
    console.print(_table(rows))
    same = sum(row.identical for row in rows)
    console.print(f"unedited rows are bit-identical to the base output in {same} of {len(rows)} edits")
    console.print("dB: peak signal-to-noise ratio against recomputing everything")
    (out / "demo.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))
    console.print(f"pictures and table in {out}")


def _stock_session(threads: int) -> Any:  # noqa: ANN401 (onnxruntime has no types)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    rest_between_runs(options)
    return onnxruntime.InferenceSession(str(terrain()), options, providers=["CPUExecutionProvider"])


def _measured(session: EditSession, run: Run, case: EditCase, full: Any, picture: Path) -> Measured:  # noqa: ANN401
    change = dict(case.change)
    if "noisy" in change:
        change["noisy"] = np.where(case.region.mask, change["noisy"], run.feeds["noisy"])
    feeds = {**run.feeds, **change}
    result = session.edit(run, change, region=case.region)
    got, expected = result.outputs[_OUTPUT], full(feeds)
    edit_ms, full_ms = interleaved(lambda: session.edit(run, change, region=case.region), lambda: full(feeds))
    psnr = measure_psnr(got, expected, case.region, peak=_PEAK)
    manifest = session.bundle.manifest
    active = case.region.active(manifest.grids, manifest.grid(manifest.editable.grid)).mask(manifest.editable.grid)
    identical = bool(np.array_equal(got[..., ~active], run.outputs[_OUTPUT][..., ~active]))
    draw(picture, case.name, run.outputs[_OUTPUT], got, case.region)
    return Measured(case.name, case.region.area, edit_ms, full_ms, psnr, identical)


def _table(rows: list[Measured]) -> Table:
    table = Table(Column("edit", min_width=16), "area", "edit ms", "full ms", "ratio", "dB inside", "near", "outside")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.area:.1%}",
            f"{row.edit_ms:.1f}",
            f"{row.full_ms:.1f}",
            f"{row.ratio:.3f}",
            f"{row.psnr.inside:.1f}",
            f"{row.psnr.near:.1f}",
            f"{row.psnr.outside:.1f}",
        )
    return table
