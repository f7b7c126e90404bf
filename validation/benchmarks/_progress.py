"""The progress of one model: first its export, whose length is not known, then counted steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class ModelProgress:
    """A line on the terminal that says what is being done to one model."""

    def __init__(self, progress: Progress, task: TaskID, steps: int) -> None:
        self._progress, self._task, self._steps, self._begun = progress, task, steps, 0

    def announce(self, line: str) -> None:
        """Shows what is being done, without counting it."""
        self._progress.update(self._task, description=line)

    def step(self, line: str) -> None:
        """Shows what is being done; the step before is complete."""
        self._progress.update(self._task, description=line, completed=self._begun, total=self._steps)
        self._begun += 1


@contextmanager
def model_progress(name: str, steps: int, console: Console) -> Iterator[ModelProgress]:
    """The progress of a model whose measurement has that many steps; at the end it shows them as done."""
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("model", total=None)
        yield ModelProgress(progress, task, steps)
        progress.update(task, description="done", completed=steps, total=steps)
