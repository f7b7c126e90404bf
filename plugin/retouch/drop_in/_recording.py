"""Recordings: the runs behind the calls that an application made, in their order."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

from retouch.errors import RunError
from retouch.session import EditSession, Run

Arrays = Mapping[str, NDArray[Any]]


class Recording:
    """What a session kept of the calls that were made while it was recording.

    Attributes:
        id: the run id, under which :meth:`InferenceSession.edit` finds the recording.
    """

    def __init__(self, session: EditSession, run_id: str) -> None:
        """Keeps nothing yet.

        Args:
            session: the session that makes the runs.
            run_id: the id.
        """
        self.id = run_id
        self._session = session
        self._lock = threading.Lock()
        self._runs: dict[int, Run] = {}
        self._gone: str | None = None

    def __repr__(self) -> str:
        return f"Recording(id={self.id!r}, calls={self.calls})"

    @property
    def closed(self) -> bool:
        """Whether it was dropped."""
        with self._lock:
            return self._gone is not None

    @property
    def calls(self) -> int:
        """The number of calls that are kept."""
        with self._lock:
            return len(self._runs)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs behind the calls, in the order of the calls.

        Raises:
            RunError: the recording was dropped, or does not fit into the store any more.
        """
        self.require()
        with self._lock:
            return tuple(run for _, run in sorted(self._runs.items()))

    @property
    def bytes(self) -> int:
        """The size of the states."""
        return sum(run.bytes for run in self.runs)

    def close(self, reason: str = "was dropped") -> None:
        """Drop the recording and free its states; edits can no longer be based on it. Twice does nothing more."""
        with self._lock:
            self._gone = self._gone or reason
            runs, self._runs = self._runs, {}
        for run in runs.values():
            run.close()

    def require(self) -> None:
        """Raise a RunError if states of the recording are gone."""
        with self._lock:
            gone, runs = self._gone, list(self._runs.values())
        if gone is not None:
            raise RunError(f"Expected a recording that is kept, but {self.id!r} {gone}. Record again.")
        kept = set(self._session.runs())
        if missing := [run for run in runs if run.id not in kept]:
            raise RunError(
                f"Expected recording {self.id!r} to keep the states of its {len(runs)} calls, but those of "
                f"{len(missing)} are gone: they were dropped, or evicted to keep the store within its budget. Record "
                "again, with a larger budget or fewer calls."
            )

    def add(self, number: int, run: Run) -> None:
        """Keep the run behind a call.

        Raises:
            RunError: the store's budget does not hold all calls.
        """
        with self._lock:
            gone = self._gone
            if gone is None:
                self._runs[number] = run
        if gone is not None:
            run.close()
        self.require()


class RecordScope:
    """Calls make base runs, and their states are kept."""

    def __init__(self, session: EditSession, recording: Recording) -> None:
        self._session = session
        self._recording = recording
        self._lock = threading.Lock()
        self._begun = 0
        self._ended = False

    def begin(self) -> int:
        """The number of the call that begins now.

        Raises:
            RunError: the recording has ended.
        """
        with self._lock:
            require_open("recording", self._recording.id, ended=self._ended)
            self._begun += 1
            return self._begun - 1

    def compute(self, number: int, feeds: Mapping[str, ArrayLike]) -> Arrays:
        """The model's outputs in that call."""
        run = self._session.base(feeds)
        self._recording.add(number, run)
        return run.outputs

    def end(self) -> None:
        """No call may begin any more."""
        with self._lock:
            self._ended = True


def new_id() -> str:
    """An id that no recording has."""
    return f"recording-{secrets.token_hex(6)}"


def require_open(what: str, name: str, *, ended: bool) -> None:
    """Raise a RunError if a scope has ended."""
    if ended:
        raise RunError(
            f"Expected calls of {what} {name!r} inside of its with block, got one after its end, from a thread or task "
            "that still has its context."
        )


def feeds_of(runs: Sequence[Run]) -> list[Arrays]:
    """What was fed to runs."""
    return [run.feeds for run in runs]
