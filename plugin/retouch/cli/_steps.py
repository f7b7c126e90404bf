"""Progress on standard error, so that standard output is free for results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Steps:
    """A context manager that shows the step at work, and the time that every step took."""

    def __init__(self) -> None:
        """Shows nothing yet."""
        columns = (
            SpinnerColumn(finished_text="-"),
            TextColumn("{task.description}"),
            TextColumn("{task.elapsed:.1f} s"),
        )
        self._progress = Progress(*columns, console=progress_console())
        self._current: TaskID | None = None

    def begin(self, name: str) -> None:
        """Ends the current step and begins the next."""
        self._end()
        self._current = self._progress.add_task(name, total=1)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._end()
        self._progress.stop()

    def _end(self) -> None:
        if self._current is not None:
            self._progress.update(self._current, completed=1)
            self._progress.stop_task(self._current)


@contextmanager
def counted(total: int) -> Iterator[Callable[[str], None]]:
    """A bar for so many steps: call the function with a step's name when it begins."""
    columns = (TextColumn("{task.completed}/{task.total}"), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=progress_console()) as progress:
        task = progress.add_task("begin", total=total)
        begun = 0

        def begin(name: str) -> None:
            nonlocal begun
            progress.update(task, completed=begun, description=name)
            begun += 1

        yield begin
        progress.update(task, completed=total, description="done")


def progress_console() -> Console:
    """The console for progress and remarks."""
    return Console(stderr=True)
