"""What a drop-in session holds beside ONNX Runtime's own session: the bundle, its recordings, what runs them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retouch.bundle import Bundle
from retouch.drop_in._editing import Editing, EditPlan
from retouch.drop_in._recording import Recording, RecordScope
from retouch.drop_in._snapshot import Snapshot
from retouch.drop_in._steps import step_inputs
from retouch.engines.ort import DEFAULT_PROVIDER
from retouch.errors import RunError
from retouch.session import EditSession, GroupNormMode, WeightStorage, mode_of_generations
from retouch.states import StateStore

Providers = Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Settings:
    """How a drop-in session records and edits.

    Attributes:
        store: where states are kept; ``None`` means in memory, without a budget.
        group_norm: how GroupNorm sees edits; ``None`` means as generated images want it.
        steps: names of the inputs that change from step to step; ``None`` means those that are known.
        weights: how edits keep weights.
    """

    store: StateStore | None = None
    group_norm: GroupNormMode | None = None
    steps: Collection[str] | None = None
    weights: WeightStorage | str = WeightStorage.FLOAT32


def _for_edits(providers: Providers) -> list[tuple[str, dict[str, Any]]] | None:
    """What edits run on: an application that names the CPU has to, and edits have kernels of their own for it."""
    if [name for name, _ in providers] == [DEFAULT_PROVIDER]:
        return None
    return [(name, dict(values)) for name, values in providers]


class Core:
    """Recordings of a bundle, and the sessions behind them. Several threads may use one."""

    def __init__(self, bundle: Bundle, settings: Settings) -> None:
        """Opens nothing yet.

        Args:
            bundle: the bundle.
            settings: how to record and edit.
        """
        self.bundle = bundle
        self.steps = step_inputs(bundle, settings.steps)
        self.inputs = tuple(spec.name for spec in bundle.manifest.inputs)
        self.outputs = tuple(output.tensor.name for output in bundle.manifest.outputs)
        self._settings = settings
        self._lock = threading.Lock()
        self._edits: EditSession | None = None
        self._snapshot: Snapshot | None = None
        self._recordings: dict[str, Recording] = {}

    def edits(self, providers: Providers, threads: int | None) -> EditSession:
        """The session that makes base runs and edits, opened with the first use."""
        with self._lock:
            if self._edits is None:
                settings = self._settings
                self._edits = EditSession(
                    self.bundle,
                    _for_edits(providers),
                    threads,
                    group_norm=settings.group_norm or mode_of_generations(self.bundle.manifest),
                    store=settings.store,
                    weights=settings.weights,
                )
            return self._edits

    def snapshot(self, providers: Providers) -> Snapshot:
        """What reads bindings, opened with the first use."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = Snapshot(self.bundle.manifest, providers)
            return self._snapshot

    def keep(self, recording: Recording) -> None:
        """Makes a recording known under its id."""
        self.recordings()  # forgets those that were closed
        with self._lock:
            self._recordings[recording.id] = recording

    def recordings(self) -> tuple[Recording, ...]:
        """The recordings that are known, the newest last; those that were closed are left out."""
        with self._lock:
            self._recordings = {name: item for name, item in self._recordings.items() if not item.closed}
            return tuple(self._recordings.values())

    def find(self, recording: Recording | str) -> Recording:
        """A recording of this session.

        Raises:
            RunError: it is unknown, or its states are gone.
        """
        if isinstance(recording, Recording):
            recording.require()  # which says what became of it
        name = recording if isinstance(recording, str) else recording.id
        with self._lock:
            found = self._recordings.get(name)
        if found is None or (isinstance(recording, Recording) and recording is not found):
            known = ", ".join(item.id for item in self.recordings()) or "none is kept"
            raise RunError(
                f"Expected the id of a recording of this session, got {name!r}. Record with `with session.record() as "
                f"recording:`, or use one of: {known}."
            )
        found.require()
        return found

    def restart(self, reason: str) -> None:
        """Lets go of all that was opened, and of the recordings, which lie on the devices used so far."""
        with self._lock:
            edits, self._edits, self._snapshot = self._edits, None, None
            recordings = list(self._recordings.values())
        for recording in recordings:
            recording.close(reason)
        if edits is not None:
            edits.close()

    def recorder(self, edits: EditSession, run_id: str) -> tuple[Recording, RecordScope]:
        """A recording that begins, and the scope of its calls.

        Raises:
            RunError: the id is taken.
        """
        recording = Recording(edits, run_id)
        self._require_new(recording.id)
        return recording, RecordScope(edits, recording)

    def editor(self, edits: EditSession, plan: EditPlan, target: str | None) -> Editing:
        """An edit that begins.

        Args:
            edits: the session that makes the runs.
            plan: what to repeat.
            target: id of the recording that it becomes, if it is to become one.
        """
        if target is not None:
            self._require_new(target)
        return Editing(edits, plan, None if target is None else Recording(edits, target))

    def _require_new(self, name: str) -> None:
        with self._lock:
            taken = name in self._recordings and not self._recordings[name].closed
        if taken:
            raise RunError(
                f"Expected a new run id, got {name!r}, which is a recording's. Close that one, or use another."
            )
