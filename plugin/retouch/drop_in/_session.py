"""``onnxruntime.InferenceSession`` on a bundle."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Bundle
from retouch.drop_in._core import Core, Settings
from retouch.drop_in._editing import Editing, EditPlan
from retouch.drop_in._graph import graph_of
from retouch.drop_in._pixels import region_on_grid
from retouch.drop_in._places import Place, original_of, place_of, require_source
from retouch.drop_in._recording import Recording, new_id
from retouch.drop_in._scoped_session import ScopedSession
from retouch.drop_in._scopes import opened, warn_of_idleness
from retouch.drop_in._stock import StockSession
from retouch.region import Region, RegionPolicy
from retouch.session import EditSession, GroupNormMode, WeightStorage
from retouch.states import StateStore

if TYPE_CHECKING:
    from onnxruntime import SessionOptions

_Options = Sequence[Mapping[str, Any]]


class InferenceSession(ScopedSession):
    """An ``onnxruntime.InferenceSession`` that can record its calls and repeat them as edits.

    Inputs, outputs and methods are those of a stock session on the original model. Outside of :meth:`record` and
    :meth:`edit` a call runs the original model, or the bundle's base graph if the original is not at hand.

    Example:
        >>> session = retouch.InferenceSession("sd.onnx/unet/model.onnx", providers=["CPUExecutionProvider"])
        >>> with session.record() as recording:
        ...     image = sample(session)
        >>> with session.edit(recording, region=mask):
        ...     edited = sample(session)
    """

    _model_path: str | None

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | Bundle,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, dict[str, Any]]] | None = None,
        provider_options: _Options | None = None,
        *,
        store: StateStore | None = None,
        group_norm: GroupNormMode | None = None,
        steps: Collection[str] | None = None,
        weights: WeightStorage | str = WeightStorage.FLOAT32,
        **kwargs: Any,  # noqa: ANN401 # passed on
    ) -> None:
        """Opens the graph for calls outside of recordings and edits; the others are opened with their first call.

        Args:
            path_or_bytes: a bundle, or a model file with its bundle beside it (``bundle``, or the file's name with
                ``.bundle``). The name is that of the stock session's argument.
            sess_options: as for the stock session. Of these, the number of threads applies to recordings and edits too.
            providers: as for the stock session.
            provider_options: as for the stock session.
            store: where states are kept, with a budget if it has one; ``None`` means in memory, without a budget.
            group_norm: how GroupNorm sees edits: ``cached``, or ``corrected``, which keeps more. ``None`` means
                ``cached`` for models without conditions, such as decoders, and for others ``auto``, or ``corrected``
                if the bundle was not calibrated: another prompt moves what GroupNorm sees.
            steps: names of the inputs that change from call to call, as a time step does; an edit has to repeat them.
                ``None`` means those that an exported pipeline says, or inputs with usual names (timestep, sigma, ...).
            weights: how edits keep the model's weights; see :class:`EditSession`.
            **kwargs: as for the stock session, but ``enable_fallback`` is off unless it is given: a provider that fails
                is an error.

        Raises:
            BundleError: there is no bundle, it is damaged, or it was exported from another model.
            FeedError: ``steps`` names no input.
        """
        place = _place(path_or_bytes)
        graph = graph_of(place.bundle, place.original, sess_options)
        self._attach(place.bundle, Settings(store, group_norm, steps, weights), from_bytes=place.original is None)
        super().__init__(graph.model, graph.options, providers, provider_options, **{"enable_fallback": 0, **kwargs})
        self._model_path = str(graph.path)  # pipelines look for a configuration beside it

    @classmethod
    def adopt(
        cls,
        session: StockSession,
        bundle: Bundle | str | os.PathLike[str],
        *,
        store: StateStore | None = None,
        group_norm: GroupNormMode | None = None,
        steps: Collection[str] | None = None,
        weights: WeightStorage | str = WeightStorage.FLOAT32,
    ) -> Self:
        """A session that runs an open stock session outside of recordings and edits, without loading it again.

        Bindings that were made with the stock session are valid for this one too.

        Args:
            session: the stock session, on the model that the bundle was exported from.
            bundle: the bundle, or its directory.
            store: see the constructor, like the following.
            group_norm: see the constructor.
            steps: see the constructor.
            weights: see the constructor.

        Raises:
            BundleError: there is no bundle, it is damaged, or it was exported from another model.
        """
        opened_bundle = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
        path = getattr(session, "_model_path", None)
        if path is not None:
            require_source(opened_bundle, Path(path))
        adopted = cls.__new__(cls)
        adopted.__dict__.update(vars(session))
        cls._attach(adopted, opened_bundle, Settings(store, group_norm, steps, weights), from_bytes=False)
        return adopted

    def _attach(self, bundle: Bundle, settings: Settings, *, from_bytes: bool) -> None:
        self._core = Core(bundle, settings)
        self._from_bytes = from_bytes

    @property
    def bundle(self) -> Bundle:
        """The bundle."""
        return self._core.bundle

    @contextlib.contextmanager
    def record(self, run_id: str | None = None) -> Iterator[Recording]:
        """A context in which every call is a base run whose states are kept.

        It belongs to the current context (``contextvars``): other threads and tasks go on as before. What a call gives
        comes from the bundle's base graph, whose last bits may differ from the original model's. If the block raises,
        nothing is kept.

        Args:
            run_id: the recording's id; ``None`` means a new one.

        Yields:
            The recording.

        Raises:
            RunError: a recording or edit is open, the id is taken, or the store's budget does not hold all calls.
            FeedError: a call's feeds do not fit the bundle.
            NonFiniteError: an output holds NaN or infinity.
        """
        recording, scope = self._core.recorder(self._edits(), run_id or new_id())
        try:
            with opened(self._core, scope):
                yield recording
        except BaseException:
            recording.close("was given up, for its block raised an exception")
            raise
        self._core.keep(recording)

    @contextlib.contextmanager
    def edit(
        self,
        recording: Recording | str,
        region: Region | NDArray[np.bool_],
        *,
        scale: int | None = None,
        policy: str | RegionPolicy | None = None,
        group_norm: GroupNormMode | None = None,
        fallback: bool = True,
        record: bool | str = False,
    ) -> Iterator[Editing]:
        """A context in which every call repeats the recording's call of the same number, on the rows of a region.

        Rows outside of the region, and of what the policy adds to it, are the recording's, bit for bit. Conditions may
        change; the number of calls, their order and their steps are the recording's.

        Args:
            recording: the recording, or its id.
            region: a region or boolean mask of the final image, or of the editable input's grid.
            scale: pixels of the image along each side of one position of the grid; ``None`` derives it from the two
                sizes, of which the image's has to be a whole multiple of the grid's.
            policy: how far around the region to compute; ``None`` means the region's own, for a mask the default.
            group_norm: how GroupNorm sees the edit; ``None`` means as the session was told.
            fallback: whether full runs may be made, and merged, where they were measured to be faster.
            record: whether a next edit is to be based on this one, or the run id for that.

        Yields:
            The edit, which has the reports, and with ``record`` the recording that it becomes.

        Raises:
            RunError: the recording is unknown or gone, has fewer calls, or another scope is open.
            RegionError: the region does not fit.
            FeedError: a call's feeds do not fit the bundle, or the call is not the recording's.
            NonFiniteError: an output holds NaN or infinity.
        """
        core, edits = self._core, self._edits()
        manifest = core.bundle.manifest
        on_grid = region_on_grid(region, manifest.grid(manifest.editable.grid), scale, policy)
        plan = EditPlan(core.find(recording), on_grid, core.steps, group_norm, fallback)
        target = (record if isinstance(record, str) else new_id()) if record else None
        editing = core.editor(edits, plan, target)
        try:
            with opened(core, editing):
                yield editing
        except BaseException:
            if target is not None:
                editing.recording.close("was given up, for its block raised an exception")
            raise
        if editing.idle:
            warn_of_idleness("edit")
        if target is not None:
            core.keep(editing.recording)

    def recordings(self) -> tuple[Recording, ...]:
        """The recordings that are kept, the newest last."""
        return self._core.recordings()

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, dict[str, Any]]] | None = None,
        provider_options: _Options | None = None,
    ) -> None:
        """Moves the session to other execution providers. Recordings are dropped, and bindings made before are void."""
        path = self._model_path
        if self._from_bytes:
            self._model_path = None  # else the stock session would open the base graph with all that it keeps for edits
        try:
            super().set_providers(providers, provider_options)
        finally:
            self._model_path = path
            self._core.restart("was dropped when the session's execution providers changed")

    def _edits(self) -> EditSession:
        threads = int(self.get_session_options().intra_op_num_threads)
        return self._core.edits(self._providers_in_use(), threads or None)


def _place(path: str | os.PathLike[str] | Bundle) -> Place:
    if isinstance(path, Bundle):
        return Place(path, original_of(path))
    return place_of(Path(path))
