"""Polygraphy comparisons of one case, and of all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from polygraphy.comparator import (
    AccuracyResult,
    AccuracyResults,
    BaseCompareFunc,
    Comparator,
    CosineSimilarityCompareFunc,
    IterationResult,
    PsnrResult,
    PsnrThreshold,
    RunResults,
    SimpleCompareFunc,
)

from retouch.errors import VerificationError
from retouch.validation.accuracy._polygraphy import quiet_polygraphy
from retouch.validation.psnr import psnr

Arrays = Mapping[str, NDArray[Any]]
Pair = tuple[str, str]

NO_BOUND = float("-inf")


class PeakPsnr(BaseCompareFunc):  # type: ignore[misc] # Polygraphy has no types
    """PSNR against a given peak. Polygraphy's own takes the largest value of the part that is compared.

    What it gives is Polygraphy's, so that ``polygraphy check accuracy`` judges saved results anew.
    """

    _RESULT_CLASS = PsnrResult

    def __init__(self, peaks: Mapping[str, float], bounds: Mapping[str, float]) -> None:
        self._peaks, self._bounds = peaks, bounds

    def thresholds_for(self, output_name: str) -> PsnrThreshold:
        """The smallest ratio that passes."""
        return PsnrThreshold(self._bounds.get(output_name, NO_BOUND))

    def __call__(self, expected: IterationResult, got: IterationResult) -> OrderedDict[str, PsnrResult]:
        """The ratio of every output."""
        results = OrderedDict()
        for name, array in expected.items():
            error = np.asarray(got[name], np.float64) - np.asarray(array, np.float64)
            result = PsnrResult(psnr(error, self._peaks[name]), thresholds=self.thresholds_for(name))
            result.output0_name = result.output1_name = name
            results[name] = result
        return results


def compare_bounded(pair: Pair, expected: Arrays, got: Arrays, bounds: Mapping[str, float]) -> AccuracyResults:
    """The largest absolute errors against bounds; a bound of zero asks for equality."""
    # Polygraphy lets a value pass that is inside either bound, so the relative one has to be zero.
    func = SimpleCompareFunc(
        check_error_stat="max",
        atol=dict(bounds),
        rtol=dict.fromkeys(bounds, 0.0),
        find_output_func=_same_name,
    )
    return _compare(pair, expected, got, [func])


def compare_quality(
    pair: Pair, expected: Arrays, got: Arrays, peaks: Mapping[str, float], bounds: Mapping[str, float]
) -> AccuracyResults:
    """PSNR, cosine similarity and largest error; bounds are of the PSNR, in dB."""
    infinite = float("inf")
    funcs = [
        PeakPsnr(peaks, bounds),
        CosineSimilarityCompareFunc(cosine_similarity_threshold=NO_BOUND, find_output_func=_same_name),
        SimpleCompareFunc(check_error_stat="max", atol=infinite, rtol=infinite, find_output_func=_same_name),
    ]
    return _compare(pair, expected, got, funcs)


def merged(results: Iterable[AccuracyResults]) -> AccuracyResults:
    """The results of several cases as those of several iterations."""
    parts = list(results)
    whole = []
    for functions in zip(*parts, strict=True):
        iterations: OrderedDict[Pair, list[Any]] = OrderedDict()
        for function in functions:
            for pair, own in function.items():
                iterations.setdefault(pair, []).extend(own)
        whole.append(AccuracyResult(iterations, aggregation="per_sample"))
    return AccuracyResults(whole)


def _compare(pair: Pair, expected: Arrays, got: Arrays, funcs: list[BaseCompareFunc]) -> AccuracyResults:
    if set(expected) != set(got):
        raise VerificationError(f"Expected the outputs {sorted(expected)} of {pair[1]!r}, got {sorted(got)}.")
    results = RunResults()
    for name, outputs in zip(pair, (expected, got), strict=True):
        results.append((name, [IterationResult(dict(outputs), 0.0, name)]))
    with quiet_polygraphy():
        return Comparator.compare_accuracy(results, comparisons=[(0, 1)], compare_func=funcs)


def _same_name(name: str, index: int, result: IterationResult) -> list[str]:
    """Outputs are compared by name only; Polygraphy would take the one in the same place."""
    if name not in result:
        raise VerificationError(f"Expected an output {name!r} (number {index}), got {', '.join(result.keys())}.")
    return [name]
