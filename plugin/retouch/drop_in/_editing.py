"""Edits: the calls of a recording made once more, on the rows of a region."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike, NDArray

from retouch.drop_in._noise import check_noise
from retouch.drop_in._recording import Recording, feeds_of, require_open
from retouch.drop_in._steps import check_step
from retouch.errors import RunError
from retouch.region import Region
from retouch.session import EditSession, GroupNormMode, Report, Run, checked_feeds

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class EditPlan:
    """What an edit repeats, and how.

    Attributes:
        recording: the recording that it is based on.
        region: what to compute, on the editable grid.
        steps: names of the inputs that have to be the recording's.
        group_norm: how GroupNorm sees the edit; ``None`` means as the session was told.
        fallback: whether full runs may be made, and merged, where they were measured to be faster.
    """

    recording: Recording
    region: Region
    steps: tuple[str, ...]
    group_norm: GroupNormMode | None
    fallback: bool


class Editing:
    """An edit while it is made, and what it says about itself."""

    def __init__(self, session: EditSession, plan: EditPlan, target: Recording | None) -> None:
        """Computes nothing yet.

        Args:
            session: the session that makes the runs.
            plan: what to repeat.
            target: where to keep the states of the edit, if a next edit is to be based on it.
        """
        self._session = session
        self._plan = plan
        self._runs: tuple[Run, ...] = plan.recording.runs
        self._target = target
        self._lock = threading.Lock()
        self._begun = 0
        self._ended = False
        self._reports: dict[int, Report] = {}

    @property
    def reports(self) -> tuple[Report, ...]:
        """What every call says about itself, in the order of the calls."""
        with self._lock:
            return tuple(report for _, report in sorted(self._reports.items()))

    @property
    def idle(self) -> bool:
        """Whether no call was made, although some were recorded."""
        with self._lock:
            return bool(self._runs) and not self._begun

    @property
    def recording(self) -> Recording:
        """The recording that the edit becomes, for the next edit to be based on.

        Raises:
            RunError: the edit was made without ``record=True``.
        """
        if self._target is None:
            raise RunError("Expected an edit made with record=True, got one that keeps nothing. Edit again with it.")
        return self._target

    def begin(self) -> int:
        """The number of the call that begins now.

        Raises:
            RunError: the edit has ended, or the recording has no further call.
        """
        with self._lock:
            require_open("the edit of", self._plan.recording.id, ended=self._ended)
            if self._begun >= len(self._runs):
                raise RunError(
                    f"Expected at most the {len(self._runs)} calls of recording {self._plan.recording.id!r}, got "
                    f"another. An edit repeats what was recorded; a second one needs a with block of its own."
                )
            self._begun += 1
            return self._begun - 1

    def compute(self, number: int, feeds: Mapping[str, ArrayLike]) -> Arrays:
        """The model's outputs in that call; rows outside of the region are the recording's, bit for bit.

        Raises:
            FeedError: the feeds do not fit the model, or the call is not the recording's.
        """
        plan, manifest = self._plan, self._session.bundle.manifest
        checked = checked_feeds(manifest.inputs, feeds)
        recorded = feeds_of(self._runs)
        check_step(manifest, plan.steps, number, recorded, checked)
        if number == 0:
            name = manifest.editable.input
            check_noise(manifest, plan.steps, plan.region.mask, recorded[0][name], checked[name])
        result = self._session.edit(
            self._runs[number],
            checked,
            region=plan.region,
            group_norm=plan.group_norm,
            fallback=plan.fallback,
            record=self._target is not None,
        )
        with self._lock:
            self._reports[number] = result.report
        if self._target is not None:
            self._target.add(number, result.commit())
        return result.outputs

    def end(self) -> None:
        """No call may begin any more."""
        with self._lock:
            self._ended = True
