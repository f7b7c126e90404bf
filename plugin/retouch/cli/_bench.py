"""``retouch bench``: a bundle against the full model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from retouch.bench import Footprint, Measurement, box_region, check_original, measure, measure_footprint
from retouch.bundle import Bundle
from retouch.cli._areas import parse_areas
from retouch.cli._results import JSON_HELP, result_console, write_json
from retouch.cli._run import WEIGHTS_HELP
from retouch.cli._steps import counted
from retouch.errors import RegionError
from retouch.region import POLICIES, Region, RegionPolicy
from retouch.session import GroupNormMode, WeightStorage

_AREAS = "0.02,0.05,0.1,0.25,0.5,1.0"
_PROCESSES = 5


def bench(
    bundle: Annotated[Path, typer.Argument(help="Directory of the bundle.")],
    areas: Annotated[
        str, typer.Option(help="Shares of the editable positions to edit, above 0 and at most 1.")
    ] = _AREAS,
    box: Annotated[
        list[str] | None, typer.Option(metavar="HxW+D", help="Also a box of H x W positions with dilation D.")
    ] = None,
    original: Annotated[Path | None, typer.Option(help="The exported model, to compare with it as well.")] = None,
    policy: Annotated[str, typer.Option(help=f"How far around areas to compute: {', '.join(POLICIES)}.")] = "exact",
    group_norm: Annotated[GroupNormMode, typer.Option(help="How GroupNorm sees the edits.")] = "cached",
    weights: Annotated[WeightStorage, typer.Option(help=WEIGHTS_HELP)] = WeightStorage.FLOAT32,
    threads: Annotated[int, typer.Option(min=1, help="Threads per run.")] = 1,
    repeats: Annotated[int, typer.Option(min=9, help="Timed rounds per case, after two to warm up.")] = 9,
    memory: Annotated[
        bool, typer.Option("--memory", help="Instead measure memory, start-up time and sizes, in fresh processes.")
    ] = False,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Times edits of several sizes against the full model, in turn, in one process.

    Ratios are edit over full model. "ratio" is of the CPU time of the process, which is steady on busy machines;
    "wall" is of time on the clock. With --original, the full model is the faster one of it and the bundle's.
    """
    opened = Bundle.open(bundle)
    if original is not None:
        check_original(original, opened.manifest)
    if memory:
        footprint = _footprint(opened, original, threads)
        write_json(json_file, footprint)
        result_console(json_file).print(_sizes(footprint))
        return
    cases = _Cases(parse_areas(areas, _AREAS), box or [], policy, group_norm, weights)
    rows = _rows(opened, original, threads, cases, repeats)
    write_json(json_file, rows)
    result_console(json_file).print(_times(rows))


@dataclass(frozen=True)
class _Cases:
    areas: tuple[float, ...]
    boxes: list[str]
    policy: str
    group_norm: GroupNormMode
    weights: WeightStorage


def _rows(bundle: Bundle, original: Path | None, threads: int, cases: _Cases, repeats: int) -> list[Measurement]:
    dims = bundle.manifest.grid(bundle.manifest.editable.grid).dims
    regions = {_box_name(text): _box(text, dims) for text in cases.boxes}
    with counted(len(cases.areas) + len(regions)) as begin:
        return measure(
            bundle,
            cases.areas,
            threads=threads,
            policy=cases.policy,
            group_norm=cases.group_norm,
            weights=cases.weights,
            original=original,
            regions=regions,
            repeats=repeats,
            progress=begin,
        )


def _footprint(bundle: Bundle, original: Path | None, threads: int) -> Footprint:
    with counted(2 * _PROCESSES) as begin:
        return measure_footprint(bundle, original=original, threads=threads, processes=_PROCESSES, progress=begin)


def _box(text: str, dims: Sequence[int]) -> Region:
    match = re.fullmatch(r"(\d+(?:x\d+)*)(?:\+(\d+))?", text)
    if match is None:
        raise RegionError(f"Expected --box HxW+D, like 16x16+4, got {text!r}.")
    return box_region(dims, [int(part) for part in match[1].split("x")], RegionPolicy(dilation=int(match[2] or 0)))


def _box_name(text: str) -> str:
    size, _, dilation = text.partition("+")
    return f"{size}, dilation {dilation or 0}"


def _times(rows: Sequence[Measurement]) -> Table:
    table = Table("case", "area", "active rows", "FLOPs", "full ms", "edit ms", "ratio", "wall", "path")
    for row in rows:
        table.add_row(
            row["case"],
            f"{row['area']:.2%}",
            ", ".join(str(count) for count in row["rows"].values()),
            f"{row['flop_ratio']:.1%}",
            f"{row['base_ms']:.2f}",
            f"{row['edit_ms']:.2f}",
            f"{row['ratio']:.3f}",
            f"{row['wall_ratio']:.3f}",
            row["path"],
        )
    return table


def _sizes(footprint: Footprint) -> Table:
    table = Table("", "base + edit", f"stock ({footprint['stock_model']})")
    edit, stock = footprint["edit"], footprint["stock"]
    table.add_row("graphs loaded", f"{edit['open_ms']:.0f} ms", f"{stock['open_ms']:.0f} ms")
    table.add_row("first result", f"{edit['first_ms']:.0f} ms", f"{stock['first_ms']:.0f} ms")
    table.add_row("peak memory", *(_mebibytes(probe["peak_bytes"]) for probe in (edit, stock)))
    table.add_row("memory at rest", *(_mebibytes(probe["rest_bytes"]) for probe in (edit, stock)))
    table.add_row("of that mapped files", *(_mebibytes(probe["mapped_bytes"]) for probe in (edit, stock)))
    table.add_row("after imports", *(_mebibytes(probe["imports_bytes"]) for probe in (edit, stock)))
    table.add_row("states of a run", _mebibytes(footprint["states_bytes"]), "")
    table.add_row("on disk", _mebibytes(footprint["bundle_bytes"]), _mebibytes(footprint["original_bytes"]))
    table.add_row("of that shared weights", _mebibytes(footprint["weights_bytes"]), "")
    return table


def _mebibytes(size: int | None) -> str:
    return "" if size is None else f"{size / 2**20:.1f} MiB"
