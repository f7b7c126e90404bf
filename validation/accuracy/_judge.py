"""Judges the outputs of a suite: comparisons by Polygraphy, figures and faults from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from polygraphy.comparator import AccuracyResults

from retouch.bundle import Manifest, OutputSpec
from retouch.export.verify import TOLERANCES
from retouch.session import WeightStorage
from retouch.validation.accuracy._cases import EXACT, Case
from retouch.validation.accuracy._comparisons import NO_BOUND, compare_bounded, compare_quality, merged
from retouch.validation.accuracy._figures import CaseFigures, OutputFigures, ZoneFigures
from retouch.validation.accuracy._options import ValidationOptions
from retouch.validation.accuracy._run import SuiteRun, non_finite
from retouch.validation.accuracy._runners import BEFORE, EDIT, FULL, ORACLE
from retouch.validation.accuracy._zones import INSIDE, active_mask, elements, zone_masks

Arrays = Mapping[str, NDArray[Any]]

ORACLE_EDIT, KEPT, EXACTNESS, QUALITY = "oracle-edit", "before-edit.kept", "full-edit.exact", "full-edit.zones"

_ROUNDINGS = 8
"""Units of the coarsest type of values or weights, which rounding may add up to, as in the exporter's checks."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """What became of a suite: figures, and by name the comparisons that they are from."""

    cases: tuple[CaseFigures, ...]
    accuracy: Mapping[str, AccuracyResults]


def judge(run: SuiteRun, manifest: Manifest, options: ValidationOptions) -> Judgement:
    """The figures of every case, and the comparisons."""
    judge = _Judge(run, manifest, options)
    cases = tuple(judge.case(number, case) for number, case in enumerate(run.suite.cases))
    return Judgement(cases, {name: merged(results) for name, results in judge.made.items()})


@dataclass
class _Judge:
    run: SuiteRun
    manifest: Manifest
    options: ValidationOptions
    made: dict[str, list[AccuracyResults]] = field(default_factory=lambda: defaultdict(list))

    def case(self, number: int, case: Case) -> CaseFigures:
        names = [FULL, BEFORE, EDIT, *([ORACLE] if self.run.has_oracle else [])]
        outputs = {name: self.run.outputs(name, number) for name in names}
        faults = [f"{name}: {fault}" for name in names for fault in non_finite(outputs[name])]
        figures: tuple[OutputFigures, ...] = ()
        if not faults:
            seen = _Seen(self, number, case, outputs)
            figures = tuple(seen.output(spec) for spec in self.manifest.outputs)
            faults = [fault for output in figures for fault in _faults(output, seen.least_psnr)]
        active = case.region.active(self.manifest.grids, self.manifest.grid(self.manifest.editable.grid))
        computed = float(active.mask(self.manifest.editable.grid).mean())
        suite = self.run.suite
        return CaseFigures(
            suite.name, case.name, case.kind, suite.group_norm, case.region.area, computed, figures, tuple(faults)
        )

    def keep(self, name: str, results: AccuracyResults) -> AccuracyResults:
        self.made[name].append(results)
        return results


@dataclass
class _Seen:
    """The outputs of all runners for one case."""

    judge: _Judge
    number: int
    case: Case
    outputs: Mapping[str, Arrays]

    def output(self, spec: OutputSpec) -> OutputFigures:
        name = spec.tensor.name
        full = self.outputs[FULL][name]
        scale = float(np.abs(full.astype(np.float64)).max()) or 1.0
        unit, least = _unit(full), _ROUNDINGS * _coarsest_unit(self.judge.manifest, self.judge.options.weights)
        oracle_bound = max(TOLERANCES["masked_reference"], least)
        exact = max(TOLERANCES["all_rows"], least) if self.case.kind in EXACT else None
        oracle = self._oracle_error(spec, oracle_bound)
        return OutputFigures(
            name=name,
            oracle_error=oracle,
            oracle_bound=oracle_bound,
            oracle_ulps=None if oracle is None or not unit else oracle / unit,
            kept_identical=self._kept(spec),
            full_error=self._full_error(spec, exact, scale),
            full_bound=exact,
            zones=self._quality(spec, EDIT, self.outputs[EDIT], self.least_psnr, keep=True),
            unedited=self._unedited(spec),
        )

    @property
    def least_psnr(self) -> float:
        """The smallest PSNR inside that passes. An edit that must be exact is judged by its error."""
        asked = self.judge.options.min_psnr
        return NO_BOUND if asked is None or self.case.kind in EXACT else asked

    def _oracle_error(self, spec: OutputSpec, bound: float) -> float | None:
        if ORACLE not in self.outputs:
            return None
        # Where nothing is computed, the difference would be that between two ways to make the base run.
        mask, name = active_mask(self.judge.manifest, spec, self.case), spec.tensor.name
        oracle, edit = ({name: elements(spec, self.outputs[runner][name], mask)} for runner in (ORACLE, EDIT))
        scale = float(np.abs(self.outputs[ORACLE][name].astype(np.float64)).max()) or 1.0
        results = compare_bounded((ORACLE, EDIT), oracle, edit, {name: bound * scale})
        return float(self.judge.keep(ORACLE_EDIT, results)[0][ORACLE, EDIT][0][name].max_absdiff) / scale

    def _kept(self, spec: OutputSpec) -> bool | None:
        mask, name = active_mask(self.judge.manifest, spec, self.case), spec.tensor.name
        if mask is None or mask.all():
            return None
        before, edit = ({name: elements(spec, self.outputs[runner][name], ~mask)} for runner in (BEFORE, EDIT))
        results = compare_bounded((BEFORE, EDIT), before, edit, {name: 0.0})
        # Zeros of another sign are equal to Polygraphy.
        return bool(self.judge.keep(KEPT, results)) and before[name].tobytes() == edit[name].tobytes()

    def _full_error(self, spec: OutputSpec, bound: float | None, scale: float) -> float:
        name = spec.tensor.name
        full, edit = ({name: self.outputs[runner][name]} for runner in (FULL, EDIT))
        if bound is not None:
            self.judge.keep(EXACTNESS, compare_bounded((FULL, EDIT), full, edit, {name: bound * scale}))
        return float(np.abs(full[name].astype(np.float64) - edit[name].astype(np.float64)).max()) / scale

    def _unedited(self, spec: OutputSpec) -> ZoneFigures:
        """What was there before the edit, or before the first of several in a row."""
        chained = self.judge.run.suite.chained
        before = self.judge.run.outputs(BEFORE, 0) if chained else self.outputs[BEFORE]
        return self._quality(spec, BEFORE, before, NO_BOUND, keep=False)[INSIDE]

    def _quality(
        self, spec: OutputSpec, runner: str, got: Arrays, bound: float, *, keep: bool
    ) -> dict[str, ZoneFigures]:
        name = spec.tensor.name
        masks = zone_masks(self.judge.manifest, spec, self.case)
        expected, ours = (
            {f"{name}/{zone}": elements(spec, part[name], mask) for zone, mask in masks.items()}
            for part in (self.outputs[FULL], got)
        )
        peaks = dict.fromkeys(expected, self._peak(name))
        results = compare_quality((FULL, runner), expected, ours, peaks, {f"{name}/{INSIDE}": bound})
        if keep:
            self.judge.keep(QUALITY, results)
        psnr, cosine, largest = (part[FULL, runner][0] for part in results)
        return {
            zone: ZoneFigures(
                psnr[f"{name}/{zone}"].psnr,
                cosine[f"{name}/{zone}"].cosine_similarity,
                largest[f"{name}/{zone}"].max_absdiff,
            )
            for zone in masks
        }

    def _peak(self, name: str) -> float:
        if self.judge.options.peak is not None:
            return self.judge.options.peak
        first = self.judge.run.outputs(BEFORE, 0)[name].astype(np.float64)
        return float(first.max() - first.min()) or 1.0


def _faults(output: OutputFigures, least: float) -> list[str]:
    faults = []
    if output.oracle_error is not None and not output.oracle_error <= output.oracle_bound:
        faults.append(f"off the oracle by {output.oracle_error:.1e} of the scale (allowed {output.oracle_bound:.0e})")
    if output.kept_identical is False:
        faults.append("rows that are not active changed")
    if output.full_bound is not None and not output.full_error <= output.full_bound:
        faults.append(f"off the full model by {output.full_error:.1e} of the scale (allowed {output.full_bound:.0e})")
    inside = output.zones[INSIDE].psnr
    if not inside >= least:
        faults.append(f"{inside:.1f} dB inside, at least {least:.1f} dB asked for")
    return [f"output {output.name!r}: {fault}" for fault in faults]


def _unit(array: NDArray[Any]) -> float:
    """The distance from one to the next number of the array's type; nothing for integers."""
    return _epsilon(array.dtype.name)


def _coarsest_unit(manifest: Manifest, weights: WeightStorage) -> float:
    kept = {spec.dtype for spec in manifest.cacheables} | {output.tensor.dtype for output in manifest.outputs}
    return max(_epsilon(name) for name in (*kept, str(weights)))


def _epsilon(dtype: str) -> float:
    if "float" not in dtype:
        return 0.0
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call] # it has no types
