"""What an edit gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from retouch.engines import Value
from retouch.session._report import Report
from retouch.session._run import Run


@dataclass(frozen=True, eq=False)
class Result:
    """What an edit gives.

    Attributes:
        outputs: the model's outputs (read-only arrays); rows outside the active set are the base run's, bit for bit.
        report: how they came about.
        values: the outputs where the engine has them. Those of an engine on a GPU have ``__dlpack__``, so that
            ``torch.from_dlpack`` and its like take them without a copy; nobody may change them.
    """

    outputs: Mapping[str, NDArray[Any]] = field(repr=False)
    report: Report
    _commit: Callable[[], Run] = field(repr=False)
    values: Mapping[str, Value] = field(repr=False)

    def commit(self) -> Run:
        """A new run that this edit becomes, for the next edit to be based on; the base run stays as it is.

        An edit made with ``record=True`` has the changed states at hand; any other is computed once more.

        Raises:
            RunError: the base run has been dropped since.
        """
        return self._commit()
