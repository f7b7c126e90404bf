"""Validates a bundle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from polygraphy.comparator import AccuracyResults

from retouch.bench import check_original
from retouch.bundle import Bundle, Manifest
from retouch.validation.accuracy._cases import EXACT, make_suites
from retouch.validation.accuracy._feeds import FeedSource, leaves_tokens
from retouch.validation.accuracy._figures import CaseFigures, Figures
from retouch.validation.accuracy._judge import judge
from retouch.validation.accuracy._options import ValidationOptions
from retouch.validation.accuracy._run import SuiteRun, run_suite
from retouch.validation.accuracy._zones import INSIDE


@dataclass(frozen=True, eq=False)
class Validation:
    """What a validation gave.

    Attributes:
        bundle: the bundle.
        options: what it was validated with.
        figures: the figures and the verdict.
        runs: the outputs of every suite.
        accuracy: by name of file, Polygraphy's comparisons.
    """

    bundle: Bundle
    options: ValidationOptions
    figures: Figures
    runs: tuple[SuiteRun, ...]
    accuracy: Mapping[str, AccuracyResults]


def validate(bundle: Bundle | Path, options: ValidationOptions, tell: Callable[[str], None]) -> Validation:
    """The outcome of all suites."""
    opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
    if options.original is not None:
        check_original(options.original, opened.manifest)
    suites = make_suites(opened.manifest, FeedSource.of(opened, options.feeds), options)
    cases: list[CaseFigures] = []
    runs, accuracy = [], {}
    for suite in suites:
        run = run_suite(suite, opened, options, tell)
        tell(f"{suite.name}: compare")
        judgement = judge(run, opened.manifest, options)
        cases += judgement.cases
        runs.append(run)
        accuracy.update({f"{suite.name}.{name}": results for name, results in judgement.accuracy.items()})
    remarks = (*(run.remark for run in runs if run.remark), *_left_out(opened.manifest), *_of_no_use(cases))
    return Validation(opened, options, Figures(tuple(cases), remarks), tuple(runs), accuracy)


def _left_out(manifest: Manifest) -> Iterator[str]:
    if leaves_tokens(manifest):
        yield "No case edits all rows: text tokens stay as they were, so that is not the full model's output."


def _of_no_use(cases: Sequence[CaseFigures]) -> Iterator[str]:
    """Edits that are farther from a full recomputation than what was there before: right, but of no use."""
    for case in cases:
        for output in case.outputs:
            inside, unedited = output.zones[INSIDE].psnr, output.unedited.psnr
            if case.kind not in EXACT and inside < unedited:
                yield (
                    f"{case.name}, {output.name}: {inside:.1f} dB inside, {unedited:.1f} dB if nothing is recomputed; "
                    "a wider region policy may help"
                )
