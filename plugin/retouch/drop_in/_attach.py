"""Sessions of a pipeline replaced by drop-in sessions, while the pipeline stays what it is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retouch.drop_in._editing import Editing
from retouch.drop_in._places import bundle_beside
from retouch.drop_in._recording import Recording, new_id
from retouch.drop_in._scopes import warn_of_idleness
from retouch.drop_in._seats import Seat, seats_of
from retouch.drop_in._session import InferenceSession
from retouch.drop_in._stock import StockSession
from retouch.errors import BundleError, RunError
from retouch.region import Region, RegionPolicy
from retouch.session import GroupNormMode, Report
from retouch.states import StateStore


@dataclass(frozen=True, eq=False)
class PipelineRecording:
    """What a pipeline's sessions kept of the calls that were made while they were recording.

    Attributes:
        id: the run id; it is the same in all sessions.
        parts: the recordings, by component.
    """

    id: str
    parts: Mapping[str, Recording] = field(repr=False)

    @property
    def calls(self) -> Mapping[str, int]:
        """The number of calls, by component."""
        return {name: part.calls for name, part in self.parts.items()}

    @property
    def bytes(self) -> int:
        """The size of the states."""
        return sum(part.bytes for part in self.parts.values())

    def close(self, reason: str = "was dropped") -> None:
        """Drop the recordings and free their states. Twice does nothing more."""
        for part in self.parts.values():
            part.close(reason)


@dataclass(frozen=True, eq=False)
class PipelineEditing:
    """An edit of a pipeline while it is made.

    Attributes:
        parts: the edits, by component.
    """

    parts: Mapping[str, Editing] = field(repr=False)

    @property
    def reports(self) -> Mapping[str, tuple[Report, ...]]:
        """What every call says about itself, by component."""
        return {name: part.reports for name, part in self.parts.items()}

    @property
    def recording(self) -> PipelineRecording:
        """The recording that the edit becomes.

        Raises:
            RunError: the edit was made without ``record=True``.
        """
        parts = {name: part.recording for name, part in self.parts.items()}
        return PipelineRecording(next(iter(parts.values())).id, parts)


class AttachedPipeline:
    """A pipeline whose sessions record and edit, until :meth:`detach`. As a context manager it detaches at the end."""

    def __init__(self, seats: Mapping[str, Seat], sessions: Mapping[str, InferenceSession]) -> None:
        """Puts the sessions into the seats.

        Args:
            seats: the seats, by component.
            sessions: a session per seat.
        """
        self._seats = seats
        self._stock: dict[str, StockSession] = {name: seat.session for name, seat in seats.items()}
        self._sessions = MappingProxyType(dict(sessions))
        self._made: list[PipelineRecording] = []
        self._attached = True
        for name, seat in seats.items():
            seat.take(sessions[name])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.detach()

    @property
    def sessions(self) -> Mapping[str, InferenceSession]:
        """The sessions, by component."""
        return self._sessions

    @contextlib.contextmanager
    def record(self, run_id: str | None = None) -> Iterator[PipelineRecording]:
        """A context in which the pipeline's calls are base runs whose states are kept; see ``InferenceSession.record``.

        Args:
            run_id: the recording's id; ``None`` means a new one.
        """
        self._require_attached()
        name = run_id or new_id()
        with contextlib.ExitStack() as stack:
            parts = {part: stack.enter_context(item.record(name)) for part, item in self._sessions.items()}
            recording = PipelineRecording(name, MappingProxyType(parts))
            yield recording
        if not any(recording.calls.values()):
            warn_of_idleness("recording")
        self._made.append(recording)

    @contextlib.contextmanager
    def edit(
        self,
        region: Region | NDArray[np.bool_],
        recording: PipelineRecording | str | None = None,
        *,
        policy: str | RegionPolicy | None = None,
        group_norm: GroupNormMode | None = None,
        fallback: bool = True,
        record: bool | str = False,
    ) -> Iterator[PipelineEditing]:
        """A context in which the pipeline's calls repeat a recording on a region; see ``InferenceSession.edit``.

        Args:
            region: a region or boolean mask of the final image.
            recording: the recording, or its id; ``None`` means the one made last.
            policy: see ``InferenceSession.edit``, like the following.
            group_norm: see there.
            fallback: see there.
            record: see there. The next edit is then based on this one.

        Raises:
            RunError: nothing was recorded, or see there.
        """
        self._require_attached()
        based_on = self._based_on(recording)
        target = (record if isinstance(record, str) else new_id()) if record else False
        with contextlib.ExitStack() as stack:
            parts = {
                name: stack.enter_context(
                    item.edit(based_on, region, policy=policy, group_norm=group_norm, fallback=fallback, record=target)
                )
                for name, item in self._sessions.items()
            }
            editing = PipelineEditing(MappingProxyType(parts))
            yield editing
        if record:
            self._made.append(editing.recording)

    def detach(self) -> None:
        """Puts the stock sessions back, and drops what was recorded. Doing it twice does nothing."""
        if not self._attached:
            return
        self._attached = False
        for name, seat in self._seats.items():
            if seat.session is self._sessions[name]:
                seat.take(self._stock[name])
        for recording in self._made:
            recording.close("was dropped when its pipeline was detached")

    def _based_on(self, recording: PipelineRecording | str | None) -> str:
        if isinstance(recording, str):
            return recording
        if recording is None and not self._made:
            raise RunError(
                "Expected a recording to base the edit on, got none. Run the pipeline inside of "
                "`with attached.record():` first."
            )
        return (recording or self._made[-1]).id

    def _require_attached(self) -> None:
        if not self._attached:
            raise RunError("Expected an attached pipeline, got one that was detached. Call retouch.attach again.")


def attach(
    pipeline: object,
    *,
    bundles: Mapping[str, str | os.PathLike[str]] | None = None,
    store: StateStore | None = None,
    group_norm: GroupNormMode | None = None,
) -> AttachedPipeline:
    """The pipeline, with drop-in sessions in place of those that have a bundle beside their model.

    The stock sessions are kept and run all calls outside of recordings and edits, so the pipeline takes no more memory
    until it records. Sessions that are drop-in sessions already stay as they are.

    Args:
        pipeline: a pipeline of optimum-onnx or an ONNX pipeline of diffusers, loaded from a directory that
            ``retouch export`` wrote.
        bundles: bundles that lie elsewhere, by component (``unet``, ``transformer``, ``vae_decoder``, ...).
        store: where states of all components are kept; ``None`` means in memory, without a budget.
        group_norm: how GroupNorm sees edits; ``None`` is for each component what it is for ``InferenceSession``.

    Raises:
        BundleError: no component has a bundle, or one is damaged or was exported from another model.
    """
    given, seats = bundles or {}, seats_of(pipeline)
    unknown = [name for name in given if name not in seats]
    sessions = {} if unknown else _sessions(seats, given, store, group_norm)
    if not sessions:
        raise BundleError(_nothing_found(pipeline, seats, unknown))
    return AttachedPipeline({name: seats[name] for name in sessions}, sessions)


def _sessions(
    seats: Mapping[str, Seat],
    bundles: Mapping[str, str | os.PathLike[str]],
    store: StateStore | None,
    group_norm: GroupNormMode | None,
) -> dict[str, InferenceSession]:
    """A drop-in session for every seat with a bundle."""
    found = {}
    for name, seat in seats.items():
        bundle = bundles.get(name) or (None if seat.model is None else bundle_beside(seat.model))
        if isinstance(seat.session, InferenceSession):
            found[name] = seat.session
        elif bundle is not None:
            found[name] = InferenceSession.adopt(seat.session, bundle, store=store, group_norm=group_norm)
    return found


def _nothing_found(pipeline: object, seats: Mapping[str, Seat], unknown: list[str]) -> str:
    kind = type(pipeline).__name__
    if unknown:
        return (
            f"Expected bundles for components of {kind} among {', '.join(seats) or 'none'}, got {', '.join(unknown)}. "
            "Name components that hold a session of ONNX Runtime."
        )
    models = ", ".join(str(seat.model) for seat in seats.values())
    looked = models or "none of its components has a session of ONNX Runtime"
    return (
        f"Expected a bundle beside a model of {kind}, got none ({looked}). Export the pipeline with "
        "`retouch export DIRECTORY -o OUTPUT` and load it from there, or pass bundles=."
    )
