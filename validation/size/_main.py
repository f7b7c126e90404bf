"""Saves the model, exports it in processes of their own, and writes what they took."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from retouch.errors import ExportError
from retouch.files import replace_text
from retouch.validation.benchmarks import facts_of
from retouch.validation.size._page import page
from retouch.validation.size._steps import Request, Step

KINDS = ("torch", "onnx")


@dataclass(frozen=True)
class Export:
    """What one export took.

    Attributes:
        kind: what was exported: the torch model, or its ONNX graph.
        weights: bytes of the model's weights.
        bundle: bytes of the bundle.
        verification: the errors that the export found, by check.
        steps: its steps.
    """

    kind: str
    weights: int
    bundle: int
    verification: dict[str, float]
    steps: list[Step]

    @property
    def peak(self) -> int:
        """Largest resident memory."""
        return max(step["peak"] for step in self.steps)

    @property
    def seconds(self) -> float:
        """Time on the clock."""
        return sum(step["seconds"] for step in self.steps)


def main(
    build: Annotated[Path, typer.Option(help="Where model and bundles are kept; they need 20 GB.")] = Path(
        "build/size"
    ),
    out: Annotated[Path, typer.Option(help="Where size.json goes.")] = Path("out/size"),
    page_file: Annotated[Path, typer.Option("--page", help="The page to write.")] = Path("docs/size.md"),
    small: Annotated[bool, typer.Option(help="Take a small model instead, to try this.")] = False,
    kinds: Annotated[str, typer.Option(help="What to export, with commas between them.")] = ",".join(KINDS),
) -> None:
    """Measures memory, time and disk that exports of a UNet as large as Stable Diffusion 1.5's take.

    Figures of kinds that are not named stay as they were, if they were measured on the same system.
    """
    chosen = _checked(kinds.split(","))
    for folder in (build, out, page_file.parent):
        folder.mkdir(parents=True, exist_ok=True)
    console = Console()
    if not (build / "unet" / "config.json").is_file():
        _watched(Request(kind="save", folder=str(build), small=small), console)
    facts = facts_of("all cores", 1, "`make bench-size`")
    done = _kept(out / "size.json", facts)
    for kind in chosen:
        done[kind] = _export(kind, build, console, small=small)
        exports = [done[name] for name in KINDS if name in done]
        replace_text(out / "size.json", json.dumps({"facts": facts, "exports": [asdict(one) for one in exports]}))
        replace_text(page_file, page(facts, exports))
    console.print(f"{page_file} and {out / 'size.json'}", highlight=False)


def _checked(kinds: Sequence[str]) -> list[str]:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ExportError(f"Expected kinds among {', '.join(KINDS)}, got {', '.join(unknown)}.")
    return [kind for kind in KINDS if kind in kinds]


def _kept(written: Path, facts: Mapping[str, object]) -> dict[str, Export]:
    """Figures of an earlier time on the same system, by kind."""
    if not written.is_file():
        return {}
    earlier = json.loads(written.read_text(encoding="utf-8"))
    if any(earlier["facts"].get(name) != facts[name] for name in facts if name != "date"):
        return {}
    return {entry["kind"]: Export(**entry) for entry in earlier["exports"]}


def _export(kind: str, build: Path, console: Console, *, small: bool) -> Export:
    lines = _watched(Request(kind=kind, folder=str(build), small=small), console)
    steps = [line["done"] for line in lines if "done" in line]
    export = Export(kind=kind, steps=steps, **lines[-1])
    console.print(f"  {kind}: {export.peak / export.weights:.2f} x the weights", highlight=False)
    return export


def _watched(request: Request, console: Console) -> list[dict[str, Any]]:
    """The lines of a process, whose steps are shown as they begin."""
    lines = []
    columns = (TextColumn(request["kind"]), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("start", total=None)
        for line in _lines(request):
            lines.append(line)
            if "begun" in line:
                progress.update(task, description=line["begun"])
                step = line["done"]
                console.print(f"    {step['name']}: {step['peak'] / 2**20:,.0f} MiB, {step['seconds']:.1f} s")
    return lines


def _lines(request: Request) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "retouch.validation.size._export", json.dumps(request)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 (our own module)
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    if process.returncode:
        raise ExportError(
            f"The export of kind {request['kind']!r} ended with {process.returncode}; its message stands above. "
            "If memory ran out, close other programs: it needs up to three times the weights."
        )
