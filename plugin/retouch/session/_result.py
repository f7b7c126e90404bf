"""The result of an edit, and how it becomes the base of the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from retouch.session._report import Report
from retouch.session._run import Run


@dataclass(frozen=True, eq=False)
class Result:
    """What an edit gives.

    Attributes:
        outputs: the model's outputs, full size; inactive rows are the base run's, bit for bit.
        report: how it was computed.
    """

    outputs: Mapping[str, NDArray[Any]]
    report: Report
    _commit: Callable[[], Run]

    def commit(self) -> Run:
        """A new run that keeps the edit's states: the base of a further edit.

        The states are the base run's with the recomputed rows merged in; the base run stays as it is. Unless the edit
        was made with ``record=True`` this computes it once more, with the recomputed rows as further outputs.
        """
        return self._commit()
