"""A bar of the steps of a sampling loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import rich.progress
from rich.console import Console

from retouch.sampling._generate import Progress

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(label: str = "steps", console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """A callback of sampling loops that draws a bar while the context lasts.

    Args:
        label: what stands in front of the bar.
        console: where to draw; ``None`` means standard error.

    Example:
        >>> with progress_bar("edit") as callback:
        ...     edited = pipeline.edit(image, region, "a hut", callback=callback)
    """
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeElapsedColumn(),
    )
    with rich.progress.Progress(*columns, console=console or Console(stderr=True)) as bar:
        task = bar.add_task(label, total=None)

        def tell(progress: Progress) -> None:
            bar.update(task, total=progress.steps, completed=progress.index + 1)

        yield tell
