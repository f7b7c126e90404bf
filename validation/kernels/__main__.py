"""Measures layers: ``python -m retouch.validation.kernels``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from retouch.engines.ort import WeightStorage
from retouch.validation.kernels import DENSE, STOCK, convolution, linear, measure, weight_errors

_CONVOLUTIONS = ((320, 64), (640, 32))
_LINEARS = ((384, 1536), (1024, 4096))
_HEAD = "| layer | rows | float32 | float16 | bfloat16 | stock | dense | against | float16, bfloat16 err |"


def main(
    rows: Annotated[str, typer.Option(help="Numbers of rows, with commas between them.")] = "1,4,8,16,32,128,256",
    threads: Annotated[int, typer.Option(min=1, help="Threads of ONNX Runtime.")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Timed rounds per layer.")] = 15,
    cold: Annotated[bool, typer.Option(help="Weights come from memory, as in models larger than the caches.")] = True,
) -> None:
    """GFLOP/s (process CPU time, medians, in turn) of 3x3 convolutions and matrix products at few rows.

    By the storage of weights. "against" are the three relative to the dense convolution, or to the stock product.
    """
    console = Console(highlight=False, soft_wrap=True)
    console.print(_HEAD + "\n" + "|---" * (_HEAD.count("|") - 1) + "|")
    for count in map(int, rows.split(",")):
        layers = [convolution(channels, side, count) for channels, side in _CONVOLUTIONS]
        layers += [linear(depth, columns, count) for depth, columns in _LINEARS]
        for layer in layers:
            speeds = measure(layer, threads=threads, repeats=repeats, cold=cold)
            cells = [f"{speeds[name]:.0f}" if name in speeds else "" for name in (*WeightStorage, STOCK, DENSE)]
            measure_of = speeds.get(DENSE, speeds[STOCK])
            cells.append(" / ".join(f"{speeds[storage] / measure_of:.2f}" for storage in WeightStorage))
            cells.append(", ".join(f"{error:.1e}" for error in weight_errors(layer).values()))
            console.print(f"| {layer.name} | {count} | {' | '.join(cells)} |")


if __name__ == "__main__":
    typer.run(main)
