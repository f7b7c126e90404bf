"""The explicit API: base runs, edits over what they kept."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.bundle import Bundle, EditGraphSpec
from retouch.engines import Engine, Program, Value
from retouch.engines.ort import OrtEngine
from retouch.errors import RunError
from retouch.region import ActiveRows, Region, RegionPolicy, index_inputs
from retouch.session._feeds import checked_feeds
from retouch.session._finite import check_finite
from retouch.session._grid_rows import merged_output
from retouch.session._mode import GroupNormMode, checked_mode, edit_spec
from retouch.session._report import Path, Prepared, Report, Seconds
from retouch.session._result import Result
from retouch.session._run import Run
from retouch.session._states import merged_states, rows_of
from retouch.states import StateStore

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class _Edit:
    """One edit, checked: everything that its computation depends on."""

    run: Run
    feeds: Arrays
    region: Region
    active: ActiveRows
    mode: GroupNormMode
    flop_ratio: float


class EditSession:
    """Base runs of a bundle's model, and edits over the states they keep. Several threads may use one session."""

    def __init__(
        self,
        bundle: Bundle | str | os.PathLike[str],
        providers: Sequence[str] | None = None,
        threads: int | None = None,
        group_norm: str = "cached",
        store: StateStore | None = None,
    ) -> None:
        """Keeps the options; graphs are opened when they are first needed.

        Args:
            bundle: the bundle, or its directory.
            providers: execution providers by name; ``None`` means the CPU.
            threads: threads per run; ``None`` leaves the choice to the engine.
            group_norm: ``cached`` or ``corrected`` moments; what base runs keep depends on it.
            store: where states are kept; ``None`` means in memory, without a budget.
        """
        self._given = bundle
        self.engine: Engine = OrtEngine(providers, threads)
        self.group_norm = checked_mode(group_norm)
        self.store = StateStore() if store is None else store
        self._lock = threading.RLock()
        self._bundle: Bundle | None = None
        self._programs: dict[tuple[str, tuple[str, ...]], Program] = {}
        self._indices = lru_cache(maxsize=16)(self._index_values)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes graphs and drops this bundle's runs: the session is as it was constructed."""
        with self._lock:
            if self._bundle is not None:
                for run in self.store.ids(self._bundle.fingerprint):
                    self.store.drop(run)
            self._bundle = None
            self._programs.clear()
            self._indices.cache_clear()

    @property
    def bundle(self) -> Bundle:
        """The bundle, opened and checked on first use."""
        with self._lock:
            if self._bundle is None:
                self._bundle = self._given if isinstance(self._given, Bundle) else Bundle.open(self._given)
            return self._bundle

    def base(self, feeds: Mapping[str, ArrayLike], *, record: bool = True) -> Run:
        """A full run of the model; with ``record`` its states are kept, so that it can be edited.

        Raises:
            FeedError: a feed is missing, extra, or of the wrong shape or dtype.
            NonFiniteError: an output holds NaN or infinity.
        """
        checked = checked_feeds(self.bundle.manifest.inputs, feeds)
        values = self._full({name: self.engine.value(array) for name, array in checked.items()}, record=record)
        outputs = self._outputs(values)
        states = {n.removeprefix("cacheable."): v for n, v in values.items() if n.startswith("cacheable.")}
        run = Run(uuid.uuid4().hex, self.bundle.fingerprint, checked, outputs)
        if record:
            self.store.put(
                run.id, run.bundle, {"states": states, "feeds": self._values(checked), "outputs": self._values(outputs)}
            )
        return run

    def edit(
        self,
        run: Run | str,
        feeds: Mapping[str, ArrayLike] | None = None,
        *,
        region: Region | NDArray[np.bool_],
        policy: str | RegionPolicy = "balanced",
        group_norm: str | None = None,
        fallback: bool = True,
        record: bool = False,
    ) -> Result:
        """The model's outputs after a change inside a region, over the states of a base run.

        Args:
            run: the base run, or its id.
            feeds: what changed; the others are the base run's.
            region: where; a boolean mask stands for ``Region.from_mask(mask, policy)``.
            policy: how far around a mask is recomputed; a ``Region`` has its own.
            group_norm: another mode than the session's.
            fallback: whether a region above the measured break-even may run the full model.
            record: whether ``Result.commit`` will be called; it then needs no second computation.

        Raises:
            RunError: the run is unknown, was dropped, or belongs to another bundle.
            RegionError, FeedError, NonFiniteError: see their texts.
        """
        start = time.perf_counter()
        edit = self._checked(run, feeds or {}, region, policy, group_norm)
        limit = self.bundle.manifest.break_even.get(self.engine.name)
        if fallback and limit is not None and edit.flop_ratio >= limit.flop_ratio:
            reason = f"{edit.flop_ratio:.0%} of the FLOPs, break-even at {limit.flop_ratio:.0%}"
            return self._dense(edit, reason, start, record=record)
        return self._incremental(edit, start, record=record)

    def drop(self, run: Run | str) -> None:
        """Forgets a run's states."""
        self.store.drop(run if isinstance(run, str) else run.id)

    def runs(self) -> tuple[str, ...]:
        """Ids of the runs of this bundle whose states are kept."""
        return self.store.ids(self.bundle.fingerprint)

    # One edit ----------------------------------------------------------------------------------------------

    def _checked(
        self,
        run: Run | str,
        feeds: Mapping[str, ArrayLike],
        region: Region | NDArray[np.bool_],
        policy: str | RegionPolicy,
        group_norm: str | None,
    ) -> _Edit:
        manifest = self.bundle.manifest
        base = self._run(run)
        changed = checked_feeds(manifest.inputs, feeds, partial=True)
        if not isinstance(region, Region):
            region = Region.from_mask(region, policy)
        active = region.active(manifest.grids, manifest.grid(manifest.editable.grid))
        mode = self.group_norm if group_norm is None else checked_mode(group_norm)
        ratio = manifest.flop_ratio(active.counts())
        return _Edit(base, {**base.feeds, **changed}, region, active, mode, ratio)

    def _run(self, run: Run | str) -> Run:
        bundle = self.bundle.fingerprint
        if not isinstance(run, str):
            self.store.get(run.id, bundle, "states")
            return run
        feeds, outputs = (self.store.get(run, bundle, part) for part in ("feeds", "outputs"))
        return Run(run, bundle, _arrays(feeds), _arrays(outputs))

    def _incremental(self, edit: _Edit, start: float, *, record: bool) -> Result:
        spec = edit_spec(self.bundle.manifest, edit.mode)[1]
        began = time.perf_counter()
        index = self._indices(_Hashed(edit.active), edit.mode)
        indexed = time.perf_counter()
        states = self._states(edit, spec)
        prepared, how = self._prepared(edit, spec, states)
        ready = time.perf_counter()
        names = [output.tensor.name for output in self.bundle.manifest.outputs]
        wanted = [*names, *(f"update.{key}" for key in spec.updates)] if record else names
        inputs = {**self._values(edit.feeds), **states, **prepared, **index}
        values = self._program(spec.file, wanted).run(inputs)
        ran = time.perf_counter()
        outputs = self._outputs(values)
        updates = {n.removeprefix("update."): v.numpy() for n, v in values.items() if n.startswith("update.")}
        seconds = Seconds(time.perf_counter() - start, indexed - began, ready - indexed, ran - ready)
        kept = (len(spec.cached), sum(states[f"cached.{key}"].nbytes for key in spec.cached))
        report = self._report(edit, "edit", "below break-even", kept, how, seconds)
        return Result(outputs, report, lambda: self._committed(edit, outputs, updates if record else None))

    def _dense(self, edit: _Edit, reason: str, start: float, *, record: bool) -> Result:
        began = time.perf_counter()
        values = self._full(self._values(edit.feeds), record=record)
        ran = time.perf_counter()
        full = self._outputs(values)
        specs = self.bundle.manifest.outputs
        outputs = {
            s.tensor.name: merged_output(s, edit.run.outputs[s.tensor.name], full[s.tensor.name], edit.active)
            for s in specs
        }
        cached = {s.id: s for s in self.bundle.manifest.cacheables}
        updates = {
            key: rows_of(cached[key], value.numpy(), edit.active)
            for key, value in ((n.removeprefix("cacheable."), v) for n, v in values.items() if "cacheable." in n)
        }
        seconds = Seconds(time.perf_counter() - start, 0.0, 0.0, ran - began)
        report = self._report(edit, "dense", reason, (0, 0), "none", seconds)
        return Result(outputs, report, lambda: self._committed(edit, outputs, updates if record else None))

    def _committed(self, edit: _Edit, outputs: Arrays, updates: Arrays | None) -> Run:
        if updates is None:
            return self._incremental(edit, time.perf_counter(), record=True).commit()
        specs = {spec.id: spec for spec in self.bundle.manifest.cacheables}
        old = _arrays(self.store.get(edit.run.id, edit.run.bundle, "states"))
        merged = merged_states(specs, old, updates, edit.active)
        source = self.bundle.manifest.editable.input
        feeds = dict(edit.feeds)
        feeds[source] = self._merged_input(edit)
        run = Run(uuid.uuid4().hex, edit.run.bundle, feeds, outputs)
        parts = {"states": self._values(merged), "feeds": self._values(feeds), "outputs": self._values(outputs)}
        self.store.put(run.id, run.bundle, parts)
        return run

    def _merged_input(self, edit: _Edit) -> NDArray[Any]:
        """The editable input as the states saw it: new at active rows, the base run's elsewhere."""
        editable = self.bundle.manifest.editable
        merged = edit.run.feeds[editable.input].copy()
        front = range(len(editable.axes))
        mask = edit.active.mask(editable.grid)
        new = np.moveaxis(edit.feeds[editable.input], editable.axes, front)
        np.moveaxis(merged, editable.axes, front)[mask] = new[mask]
        return merged

    # Inputs of the graphs ----------------------------------------------------------------------------------

    def _states(self, edit: _Edit, spec: EditGraphSpec) -> dict[str, Value]:
        kept = self.store.get(edit.run.id, edit.run.bundle, "states")
        missing = [key for key in (*spec.cached, *spec.prep_cached) if key not in kept]
        if missing:
            raise RunError(
                f"Run {edit.run.id!r} did not keep what GroupNorm mode {edit.mode!r} needs ({len(missing)} tensors). "
                f"Make the base run in a session with group_norm={edit.mode!r}."
            )
        return {f"cached.{key}": value for key, value in kept.items()}

    def _prepared(
        self, edit: _Edit, spec: EditGraphSpec, states: Mapping[str, Value]
    ) -> tuple[Mapping[str, Value], Prepared]:
        if spec.prep_file is None:
            return {}, "none"
        conditions = self._values({name: edit.feeds[name] for name in spec.conditions})
        part = "prepared." + edit.mode + "." + ".".join(value.digest for value in conditions.values())
        found = self.store.find(edit.run.id, edit.run.bundle, part)
        if found is not None:
            return found, "reused"
        made = self._program(spec.prep_file, [tensor.name for tensor in spec.prepared]).run({**conditions, **states})
        self.store.add(edit.run.id, edit.run.bundle, part, made)
        return made, "computed"

    def _index_values(self, active: _Hashed, mode: GroupNormMode) -> dict[str, Value]:
        manifest = self.bundle.manifest
        spec = edit_spec(manifest, mode)[1]
        used = [n for n in manifest.neighbourhoods if n.id in spec.neighbourhoods]
        grids = [grid for grid in manifest.grids if grid.id in spec.grids]
        return self._values(index_inputs(active.rows, used, grids))

    def _full(self, feeds: Mapping[str, Value], *, record: bool) -> dict[str, Value]:
        manifest = self.bundle.manifest
        wanted = [output.tensor.name for output in manifest.outputs]
        if record:
            spec = edit_spec(manifest, self.group_norm)[1]
            wanted += [f"cacheable.{key}" for key in dict.fromkeys((*spec.cached, *spec.prep_cached))]
        return self._program(manifest.base_file, wanted).run(feeds)

    def _program(self, file: str, outputs: Sequence[str]) -> Program:
        key = (file, tuple(outputs))
        with self._lock:
            if key not in self._programs:
                self._programs[key] = self.engine.open(self.bundle.file(file), outputs)
            return self._programs[key]

    def _values(self, arrays: Arrays) -> dict[str, Value]:
        return {name: self.engine.value(array) for name, array in arrays.items()}

    def _outputs(self, values: Mapping[str, Value]) -> dict[str, NDArray[Any]]:
        outputs = {}
        for spec in self.bundle.manifest.outputs:
            outputs[spec.tensor.name] = values[spec.tensor.name].numpy()
            check_finite(spec.tensor.name, outputs[spec.tensor.name])
        return outputs

    def _report(
        self, edit: _Edit, path: Path, reason: str, states: tuple[int, int], prepared: Prepared, seconds: Seconds
    ) -> Report:
        return Report(
            path=path,
            reason=reason,
            area=edit.region.area,
            active_rows=edit.active.counts(),
            flop_ratio=edit.flop_ratio,
            group_norm=edit.mode,
            states=states,
            prepared=prepared,
            engine=self.engine.name,
            seconds=seconds,
        )


@dataclass(frozen=True)
class _Hashed:
    """Active rows that compare by their fingerprint."""

    rows: ActiveRows

    def __hash__(self) -> int:
        return hash(self.rows.fingerprint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and self.rows.fingerprint == other.rows.fingerprint


def _arrays(values: Mapping[str, Value]) -> dict[str, NDArray[Any]]:
    return {name: value.numpy() for name, value in values.items()}
