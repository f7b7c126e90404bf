"""Measures what nodes and sessions cost beside their work: ``python -m retouch.validation.kernels.overhead BUNDLE``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retouch.validation.kernels import load_times, node_times


def main(
    bundle: Annotated[Path, typer.Argument(help="A bundle, whose edit graph is loaded.")],
    repeats: Annotated[int, typer.Option(min=1, help="Timed rounds.")] = 9,
) -> None:
    """CPU time per node (microseconds) and per loaded edit graph (milliseconds): one thread, medians, in turn."""
    nodes = node_times(repeats)
    typer.echo(f"a node: Retouch {nodes['Retouch']:.2f} us, stock {nodes['stock']:.2f} us")
    loads = load_times(bundle / "edit.onnx", repeats)
    ratio = loads["Retouch"] / loads["stock"]
    typer.echo(
        f"loading: Retouch {1e3 * loads['Retouch']:.0f} ms, stock {1e3 * loads['stock']:.0f} ms, {ratio:.2f} times"
    )


if __name__ == "__main__":
    typer.run(main)
