"""A session on one bundle."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from numpy.typing import ArrayLike

from retouch.bundle import Bundle
from retouch.engines import Value
from retouch.engines.ort import Provider, WeightStorage, checked_weights
from retouch.errors import RetouchError, RunError
from retouch.region import RegionPolicy
from retouch.session._engines import ORT, checked_engine, make_store, start_engine
from retouch.session._execute import execute
from retouch.session._feeds import feed_values
from retouch.session._finite import check_finite
from retouch.session._load_run import load_run
from retouch.session._mode import GroupNormMode, checked_mode
from retouch.session._preload import preload
from retouch.session._request import EditRequest, RegionsLike, checked_requests
from retouch.session._resolve import resolved
from retouch.session._result import Result
from retouch.session._run import Run, keep_run, states_of
from retouch.session._runtime import Runtime
from retouch.session._stack import execute_many
from retouch.states import StateStore


class EditSession:
    """Runs a bundle's model in full, keeps what it computed, and computes edits over it.

    The constructor only stores its arguments. The session opens with its first run, with :meth:`open` or as a context
    manager. Several threads may use one session.

    Example:
        >>> with EditSession("terrain.bundle") as session:
        ...     run = session.base({"noisy": noisy, "sigma": sigma})
        ...     result = session.edit(run, {"noisy": painted}, region=mask)
    """

    def __init__(
        self,
        bundle: Bundle | str | Path,
        providers: Sequence[Provider] | None = None,
        threads: int | None = None,
        group_norm: GroupNormMode = "auto",
        store: StateStore | None = None,
        *,
        engine: str = ORT,
        weights: WeightStorage | str = WeightStorage.FLOAT32,
    ) -> None:
        """Stores the arguments.

        Args:
            bundle: the bundle, or its directory.
            providers: ONNX Runtime execution providers by preference; ``None`` means the CPU.
            threads: threads per run; ``None`` leaves the choice to the engine.
            group_norm: how GroupNorm sees edits, unless an edit says otherwise; ``auto`` takes for each edit the
                moments that are expected to err less, ``cached`` ones in bundles that were not calibrated. Base runs
                keep what it needs: ``cached`` keeps less, ``corrected`` serves all, and so does ``auto`` where it has
                a choice.
            store: where runs are kept; ``None`` means in memory, on a GPU in its memory, until the session closes.
            engine: what runs the graphs: ``onnxruntime``, or ``tensorrt-rtx``, ``tensorrt`` or ``ort`` (ONNX Runtime)
                for what was built from the bundle ahead of time (``retouch build``).
            weights: how edits on Retouch's own kernels keep weights: ``float16`` and ``bfloat16`` make small edits
                faster and take half the memory; reports say what that errs. Base runs have the model's own.

        Raises:
            RetouchError: there is no such mode, engine or storage, or the engine has no providers, threads or storage.
        """
        self._bundle = bundle
        self._providers = providers
        self._threads = threads
        self._group_norm = checked_mode(group_norm)
        self._store = store
        self._weights = checked_weights(weights)
        self._engine = checked_engine(engine, providers, threads, self._weights)
        self._lock = threading.Lock()
        self._runtime: Runtime | None = None

    def open(self) -> Self:
        """The session, with its bundle checked; an open session stays as it is."""
        self._opened()
        return self

    def preload(self, *, base: bool = True, record: bool = False) -> Self:
        """The open session, with the graphs loaded that its runs need; else their first runs load them.

        With ``auto`` that is the edit graph that most edits of the calibration would take; the other one is loaded if
        an edit takes it.

        Args:
            base: whether base runs will be made.
            record: whether edits will be recorded.
        """
        preload(self._opened(), self._group_norm, base=base, record=record)
        return self

    def close(self) -> None:
        """Free everything that was opened and drop runs, but for those in a store of the caller's; it may open anew."""
        with self._lock:
            runtime, self._runtime = self._runtime, None
        if runtime is not None and self._store is None:
            runtime.store.clear()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bundle(self) -> Bundle:
        """The bundle, checked."""
        return self._opened().bundle

    def base(self, feeds: Mapping[str, ArrayLike], *, record: bool = True) -> Run:
        """The run of the full model on those feeds.

        Args:
            feeds: one array per input of the model; they are copied.
            record: whether to keep the states, without which no edit can be based on the run.

        Raises:
            FeedError: a feed is missing, unknown, or does not fit.
            NonFiniteError: an output holds NaN or infinity.
        """
        runtime = self._opened()
        values = feed_values(runtime.engine, runtime.manifest.inputs, feeds)
        results = runtime.programs.base(runtime.kept if record else ()).run(values)
        outputs = {output.tensor.name: results[output.tensor.name] for output in runtime.manifest.outputs}
        for name, value in outputs.items():
            check_finite(name, value.numpy())
        return keep_run(runtime.store, runtime.bundle, values, outputs, states_of(results) if record else None)

    def values(self, feeds: Mapping[str, ArrayLike]) -> Mapping[str, Value]:
        """Some feeds, checked and copied once, for several runs and edits; they go where arrays do.

        Raises:
            FeedError: a feed is unknown, or does not fit.
        """
        runtime = self._opened()
        return feed_values(runtime.engine, runtime.manifest.inputs, feeds, partial=True)

    def load_run(self, path: str | os.PathLike[str]) -> Run:
        """The run that :meth:`Run.save` wrote into a directory; a run that is still kept is returned as it is.

        Edits of it are bit-identical to those of the run that was saved.

        Raises:
            RunFileError: the directory is no run, or a file is missing, truncated or changed.
            RunError: the run was made with another bundle.
        """
        return load_run(self._opened(), Path(path))

    def edit(
        self,
        run: Run | str,
        feeds: Mapping[str, ArrayLike] | None = None,
        *,
        region: RegionsLike,
        policy: str | RegionPolicy | None = None,
        group_norm: GroupNormMode | None = None,
        fallback: bool = True,
        record: bool = False,
    ) -> Result:
        """What changes in that run when the feeds change inside a region.

        Args:
            run: the base run, or its id.
            feeds: the feeds that change; the others are the base run's.
            region: what to compute: a region, or a boolean mask of the editable positions. Of a batch, a list of them
                gives every sample its own, ``None`` for none: rows of all are computed, and no sample changes
                in rows that are not its own.
            policy: how far around the region to compute; ``None`` means the region's own, for a mask the default.
            group_norm: how GroupNorm sees the edit; ``None`` means as the session was told.
            fallback: whether a full run may be made, and merged, where it was measured to be faster.
            record: whether the edit will be committed; then it also computes what :meth:`Result.commit` needs.

        Raises:
            RunError: the run is unknown, was dropped, was not recorded, or belongs to another bundle.
            RegionError: the region does not fit the bundle.
            FeedError: a feed is unknown or does not fit.
            NonFiniteError: an output holds NaN or infinity.
        """
        start = time.perf_counter()
        runtime = self._opened()
        mode = self._group_norm if group_norm is None else checked_mode(group_norm)
        edit = resolved(
            runtime, self._id_of(run, runtime), EditRequest(region, {} if feeds is None else feeds, policy), mode
        )
        return execute(runtime, edit, start, fallback=fallback, record=record)

    def edit_many(
        self,
        run: Run | str,
        edits: Sequence[EditRequest],
        *,
        group_norm: GroupNormMode | None = None,
        fallback: bool = True,
    ) -> list[Result]:
        """The results of several edits of one run, each as :meth:`edit` would give it, in their order.

        Edits with the same conditions are computed in one run, which reads every weight and every state once. Each
        report says how many shared its run, and of those that ran on their own, why.

        Args:
            run: the base run, or its id.
            edits: the edits; none sees another's changes.
            group_norm: how GroupNorm sees the edits; ``None`` means as the session was told. Edits with the same
                moments share runs, ``corrected`` ones each with its own correction; of ``auto`` edits, those that take
                ``cached`` moments share one run and the others another.
            fallback: whether full runs may be made, and merged, where they were measured to be faster.

        Raises:
            RunError: the run is unknown, was dropped, was not recorded, or belongs to another bundle.
            RegionError: a region does not fit the bundle.
            FeedError: a feed is unknown or does not fit.
            NonFiniteError: an output holds NaN or infinity.
        """
        start = time.perf_counter()
        runtime = self._opened()
        mode = self._group_norm if group_norm is None else checked_mode(group_norm)
        run_id = self._id_of(run, runtime)
        found = [resolved(runtime, run_id, request, mode) for request in checked_requests(edits)]
        return execute_many(runtime, found, start, fallback=fallback)

    def runs(self) -> tuple[str, ...]:
        """The ids of the runs that are kept for this bundle; the one used last comes last."""
        runtime = self._opened()
        return runtime.store.ids(runtime.bundle.fingerprint)

    def drop(self, run: Run | str) -> None:
        """Forget a run and free its states.

        Raises:
            RunError: the run is unknown, was dropped already, or belongs to another bundle.
        """
        runtime = self._opened()
        run_id = self._id_of(run, runtime)
        runtime.store.parts(run_id, runtime.bundle.fingerprint)
        runtime.store.drop(run_id)
        runtime.bindings.sweep()

    def _opened(self) -> Runtime:
        with self._lock:
            if self._runtime is None:
                self._runtime = self._start()
            return self._runtime

    def _start(self) -> Runtime:
        bundle = self._bundle if isinstance(self._bundle, Bundle) else Bundle.open(self._bundle)
        store = make_store(self._engine) if self._store is None else self._store
        if not isinstance(store, StateStore):
            raise RetouchError(f"Expected store to be a StateStore, got {type(store).__name__}. None makes one.")
        engine = start_engine(self._engine, bundle, self._providers, self._threads, self._weights)
        engine.relieved_by(store.relieve)
        return Runtime.start(bundle, engine, store, self._group_norm, self._weights)

    @staticmethod
    def _id_of(run: Run | str, runtime: Runtime) -> str:
        if isinstance(run, str):
            return run
        given: object = run
        if not isinstance(given, Run):
            advice = (
                "Commit it first: result.commit()." if isinstance(given, Result) else "Pass what base(...) returned."
            )
            raise RunError(f"Expected a Run or the id of one, got {type(given).__name__}. {advice}")
        if run.bundle_fingerprint != runtime.bundle.fingerprint:
            raise RunError(
                f"Expected a run of bundle {runtime.bundle.fingerprint[:12]}, got run {run.id!r} of bundle "
                f"{run.bundle_fingerprint[:12]}. States fit only their own bundle: make a base run with this one."
            )
        return run.id
