"""Runs the cases of a suite through Polygraphy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from polygraphy.backend.base import BaseRunner
from polygraphy.comparator import Comparator, IterationResult, RunResults

from retouch.bundle import Bundle
from retouch.errors import VerificationError
from retouch.validation.accuracy._cases import Suite
from retouch.validation.accuracy._feed_names import to_feed_dict
from retouch.validation.accuracy._options import ValidationOptions
from retouch.validation.accuracy._polygraphy import quiet_polygraphy
from retouch.validation.accuracy._reference import Reference, TwinReference, bundle_reference
from retouch.validation.accuracy._runners import (
    BEFORE,
    EDIT,
    FULL,
    ORACLE,
    EditRunner,
    OracleRunner,
    RunnerSettings,
    full_runner,
    split_before,
)
from retouch.validation.accuracy._steps_reference import LARGEST_STATE, StepsReference

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class SuiteRun:
    """What the runners of a suite gave.

    Attributes:
        suite: the suite.
        results: the outputs of every case: of ``full``, ``oracle``, ``edit``, and ``before``, which edits are based on.
        remark: why there is no ``oracle``, or nothing.
    """

    suite: Suite
    results: RunResults
    remark: str

    def outputs(self, runner: str, case: int) -> dict[str, NDArray[Any]]:
        """The outputs of one runner for one case."""
        return dict(self.results[runner][case].items())

    @property
    def has_oracle(self) -> bool:
        """Whether the masked reference ran."""
        return ORACLE in self.results


def run_suite(suite: Suite, bundle: Bundle, options: ValidationOptions, tell: Callable[[str], None]) -> SuiteRun:
    """The outputs of all runners, one runner after the other.

    Raises:
        VerificationError: Polygraphy gave up, or a runner left out a case or an output.
        NonFiniteError: the base run's output holds NaN or infinity.
    """
    settings = RunnerSettings(bundle, options.policy, suite.group_norm, suite.chained, options.threads, options.weights)
    model = options.original or bundle.file(bundle.manifest.base_file)
    results = RunResults()
    feeds = [to_feed_dict(case) for case in suite.cases]
    runners: list[tuple[str, Callable[[], BaseRunner]]] = [
        (FULL, lambda: full_runner(model, settings)),
        (EDIT, lambda: EditRunner(settings)),
    ]
    tell(f"{suite.name}: make the oracle")
    reference, remark = _reference(suite, bundle)
    if reference is not None:
        runners.insert(1, (ORACLE, lambda: OracleRunner(settings, lambda: reference)))
    for name, make in runners:
        tell(f"{suite.name}: {name}")
        with quiet_polygraphy():
            results.extend(Comparator.run([make()], data_loader=feeds))
    _take_before_out(results)
    _check(results, suite, [output.tensor.name for output in bundle.manifest.outputs])
    return SuiteRun(suite, results, remark)


def save_inputs(run: SuiteRun, path: Path) -> None:
    """Writes the feeds of all cases, for ``polygraphy run --load-inputs``."""
    from polygraphy.json import save_json

    save_json([to_feed_dict(case) for case in run.suite.cases], str(path), description="inputs")


def _reference(suite: Suite, bundle: Bundle) -> tuple[Reference | None, str]:
    model = bundle_reference(bundle, suite.group_norm)
    if not suite.chained:
        return TwinReference(model), ""
    steps = StepsReference(model)
    if steps.fits:
        return steps, ""
    return None, (
        f"{suite.name} has no oracle: between two edits it would keep {steps.bytes / 2**20:.0f} MiB of values, "
        f"more than {LARGEST_STATE / 2**20:.0f}."
    )


def _take_before_out(results: RunResults) -> None:
    """Makes what the edits are based on a runner of its own."""
    before = []
    for place, result in enumerate(results[EDIT]):
        own, kept = split_before(dict(result.items()))
        results[EDIT][place] = IterationResult(own, result.runtime, EDIT)
        before.append(IterationResult(kept, 0.0, BEFORE))
    results.append((BEFORE, before))


def _check(results: RunResults, suite: Suite, outputs: list[str]) -> None:
    """Polygraphy compares as many iterations as there are, even none, and outputs by place if names differ."""
    for runner, iterations in results.items():
        if len(iterations) != len(suite.cases) or not suite.cases:
            raise VerificationError(
                f"Expected {len(suite.cases)} results of {runner!r} in {suite.name!r}, got {len(iterations)}."
            )
        for case, result in zip(suite.cases, iterations, strict=True):
            if sorted(result.keys()) != sorted(outputs):
                raise VerificationError(
                    f"Expected the outputs {', '.join(outputs)} of {runner!r} for {case.name!r}, got "
                    f"{', '.join(result.keys())}."
                )


def non_finite(outputs: Arrays) -> list[str]:
    """What holds NaN or infinity, in words."""
    found = []
    for name, array in outputs.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            nans, infinities = int(np.isnan(array).sum()), int(np.isinf(array).sum())
            found.append(f"output {name!r} holds {nans} NaN and {infinities} infinite elements of {array.size}")
    return found
