"""Measures attention over cached keys: ``python -m retouch.validation.kernels.attention``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from retouch.validation.kernels import OURS, STOCK_ATTENTIONS, attention_errors, attention_times


def main(
    queries: Annotated[
        str, typer.Option(help="Numbers of queries, with commas between them.")
    ] = "1,4,16,36,64,256,all",
    lengths: Annotated[str, typer.Option(help="Numbers of keys, with commas between them.")] = "1024,4096",
    threads: Annotated[int, typer.Option(min=1, help="Threads of ONNX Runtime.")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Timed rounds.")] = 15,
) -> None:
    """Milliseconds (process CPU time, medians, in turn) of attention with eight heads of 64 channels.

    "ratio" is our kernel's time over that of the fastest stock form; "error" the largest difference from double
    precision, ours and the stock forms' largest.
    """
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"| keys | queries | {OURS} | {' | '.join(STOCK_ATTENTIONS)} | ratio | error |" + "\n" + "|---" * 8 + "|"
    )
    for length in map(int, lengths.split(",")):
        for text in queries.split(","):
            count = length if text == "all" else int(text)
            times = attention_times(count, length, threads=threads, repeats=repeats)
            errors = attention_errors(count, length)
            ours, stock = times[OURS], [times[name] for name in STOCK_ATTENTIONS]
            cells = [f"{1e3 * seconds:.2f}" for seconds in (ours, *stock)] + [f"{ours / min(stock):.2f}"]
            most = max(errors[name] for name in STOCK_ATTENTIONS)
            console.print(f"| {length} | {count} | {' | '.join(cells)} | {errors[OURS]:.0e}, {most:.0e} |")


if __name__ == "__main__":
    typer.run(main)
