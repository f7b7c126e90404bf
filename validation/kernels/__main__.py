"""Measures layers: ``python -m retouch.validation.kernels``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from retouch.validation.kernels import convolution, linear, measure

_CONVOLUTIONS = ((320, 64), (640, 32))
_LINEARS = ((384, 1536), (1024, 4096))


def main(
    rows: Annotated[str, typer.Option(help="Numbers of rows, with commas between them.")] = "1,4,8,16,32,128,256",
    threads: Annotated[int, typer.Option(min=1, help="Threads of ONNX Runtime.")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Timed rounds per layer.")] = 15,
) -> None:
    """GFLOP/s (process CPU time, medians, interleaved) of 3x3 convolutions and matrix products at few rows."""
    console = Console(highlight=False)
    console.print("| layer | rows | Retouch | stock | dense |\n|---|---|---|---|---|")
    for count in map(int, rows.split(",")):
        layers = [convolution(channels, side, count) for channels, side in _CONVOLUTIONS]
        layers += [linear(depth, columns, count) for depth, columns in _LINEARS]
        for layer in layers:
            speeds = measure(layer, threads=threads, repeats=repeats)
            cells = [f"{speeds[name]:.0f}" if name in speeds else "" for name in ("Retouch", "stock", "dense")]
            console.print(f"| {layer.name} | {count} | {' | '.join(cells)} |")


if __name__ == "__main__":
    typer.run(main)
