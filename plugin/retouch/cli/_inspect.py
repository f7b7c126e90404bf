"""``retouch inspect``: what an export did with every node."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from retouch.bundle import Bundle, Manifest, MomentsSpec, total_bytes
from retouch.cli._export import break_even_text, moments_text
from retouch.cli._plan_picture import draw_plan


def inspect(
    bundle: Annotated[Path, typer.Argument(help="Directory of the bundle.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    ops: Annotated[bool, typer.Option("--ops", help="List what became of every operator.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture of the FLOPs along the model (needs matplotlib).")
    ] = None,
) -> None:
    """Prints what a bundle holds: inputs and outputs, FLOPs per plan class, every densified node with its reason."""
    manifest = Bundle.open(bundle).manifest
    if plot is not None:
        draw_plan(manifest, plot)
    if as_json:
        typer.echo(json.dumps(_summary(manifest), indent=1))
        return
    console = Console()
    console.print(_tensors(manifest))
    console.print(_classes(manifest))
    if ops:
        console.print(_operators(manifest))
    dense = [row for row in manifest.plan if row.plan == "densified"]
    if dense:
        console.print(_refusals(manifest))
    console.print(
        f"coverage {manifest.coverage:.2%}, states {total_bytes(manifest.cacheables) / 2**20:.1f} MiB a run in "
        f"{len(manifest.cacheables)} cacheables, GroupNorm modes: {', '.join(manifest.edits)}"
    )
    for check, error in manifest.verification.items():
        console.print(f"verified {check}: {error:.1e} of the output's scale", highlight=False)
    console.print(f"GroupNorm moments: {moments_text(manifest, manifest.moments)}", highlight=False)
    for name, engine in manifest.engines.items():
        rows = f", profiles for {', '.join(str(p.rows) for p in engine.profiles)} rows" if engine.profiles else ""
        console.print(f"engine of {engine.graph}: {name}, {engine.target} {engine.version}{rows}", highlight=False)
    for measured in manifest.break_even.values() or (None,):
        console.print(f"break-even: {break_even_text(measured)}", highlight=False)


def _shares(manifest: Manifest) -> list[dict[str, Any]]:
    names = dict.fromkeys(row.plan for row in manifest.plan)
    classes = []
    for name in names:
        rows = [row for row in manifest.plan if row.plan == name]
        flops = sum(row.flops for row in rows)
        classes.append(
            {
                "plan": name,
                "nodes": len(rows),
                "flops": flops,
                "flops_share": flops / manifest.flops if manifest.flops else 0.0,
                "bytes": sum(row.bytes for row in rows),
            }
        )
    return classes


def _summary(manifest: Manifest) -> dict[str, Any]:
    dense = [row for row in manifest.plan if row.plan == "densified"]
    return {
        "model": manifest.model.name,
        "editable": {"input": manifest.editable.input, "axes": list(manifest.editable.axes)},
        "coverage": manifest.coverage,
        "flops": manifest.flops,
        "plan": _shares(manifest),
        "operators": operator_coverage(manifest),
        "densified": [{"node": row.node, "op": row.op, "flops": row.flops, "reason": row.reason} for row in dense],
        "grids": {grid.id: list(grid.dims) for grid in manifest.grids},
        "state_bytes": total_bytes(manifest.cacheables),
        "inputs": [dataclasses.asdict(spec) for spec in manifest.inputs],
        "outputs": [dataclasses.asdict(output) for output in manifest.outputs],
        "group_norm": list(manifest.edits),
        "moments": _moments(manifest.moments),
        "file_bytes": sum(spec.bytes for spec in manifest.files.values()),
        "engines": {name: dataclasses.asdict(engine) for name, engine in manifest.engines.items()},
        "verification": dict(manifest.verification),
        "break_even": {engine: dataclasses.asdict(measured) for engine, measured in manifest.break_even.items()},
    }


def _moments(spec: MomentsSpec | None) -> dict[str, Any] | None:
    return None if spec is None else {"edits": len(spec.shifts), "correlation": spec.correlation}


def _tensors(manifest: Manifest) -> Table:
    table = Table("", "name", "dtype", "shape", "positions")
    editable = manifest.editable
    for spec in manifest.inputs:
        places = f"axes {', '.join(map(str, editable.axes))}: {editable.grid}" if spec.name == editable.input else ""
        table.add_row("input", escape(spec.name), spec.dtype, escape(str(list(spec.shape))), escape(places))
    for output in manifest.outputs:
        tensor, axes = output.tensor, ", ".join(map(str, output.axes))
        places = "" if output.grid is None else f"axes {axes}: {output.grid}"
        table.add_row("output", escape(tensor.name), tensor.dtype, escape(str(list(tensor.shape))), escape(places))
    return table


def _classes(manifest: Manifest) -> Table:
    table = Table("plan", "nodes", "GFLOP", "share", "MiB")
    for entry in _shares(manifest):
        table.add_row(
            entry["plan"],
            str(entry["nodes"]),
            f"{entry['flops'] / 1e9:.3f}",
            f"{entry['flops_share']:.2%}",
            f"{entry['bytes'] / 2**20:.1f}",
        )
    return table


def operator_coverage(manifest: Manifest) -> list[dict[str, Any]]:
    """Per operator, by FLOPs: the number of nodes of every plan class, and the share of FLOPs that edits save on."""
    found: list[dict[str, Any]] = []
    for op in dict.fromkeys(row.op for row in manifest.plan):
        rows = [row for row in manifest.plan if row.op == op]
        flops = sum(row.flops for row in rows)
        dense = sum(row.flops for row in rows if row.plan == "densified")
        classes = {plan: sum(row.plan == plan for row in rows) for plan in dict.fromkeys(row.plan for row in rows)}
        found.append({"op": op, "nodes": classes, "flops": flops, "coverage": 1 - dense / flops if flops else None})
    return sorted(found, key=lambda entry: (-entry["flops"], entry["op"]))


def _operators(manifest: Manifest) -> Table:
    table = Table("operator", "GFLOP", "coverage", "nodes")
    for entry in operator_coverage(manifest):
        coverage = "" if entry["coverage"] is None else f"{entry['coverage']:.1%}"
        nodes = ", ".join(f"{count} {plan}" for plan, count in entry["nodes"].items())
        table.add_row(escape(entry["op"]), f"{entry['flops'] / 1e9:.3f}", coverage, nodes)
    return table


def _refusals(manifest: Manifest) -> Table:
    table = Table("densified node", "op", "MFLOP", "reason")
    for row in manifest.plan:
        if row.plan == "densified":
            table.add_row(escape(row.node), row.op, f"{row.flops / 1e6:.1f}", escape(row.reason or ""))
    return table
