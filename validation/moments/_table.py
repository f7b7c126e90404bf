"""The study in figures and as tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retouch.calibrate import rank_correlation
from retouch.validation.moments._study import Sample, Timing
from retouch.validation.moments._subjects import KINDS

_TITLES = {"alike": "same statistics", "noise": "noise added", "flat": "flat patch"}


@dataclass(frozen=True)
class Cell:
    """Mean errors over the base runs of one model, kind of edit and area."""

    model: str
    kind: str
    area: float
    cached: float
    corrected: float
    auto: float
    corrected_taken: float

    @property
    def excess(self) -> float:
        """The error of ``auto`` over that of the better mode, less one."""
        return self.auto / min(self.cached, self.corrected) - 1.0


def figures(samples: Sequence[Sample]) -> list[Cell]:
    """A cell per model, kind and area."""
    models, areas = (list(dict.fromkeys(values)) for values in zip(*((s.model, s.area) for s in samples), strict=True))
    return [
        _cell([sample for sample in samples if (sample.model, sample.kind, sample.area) == key])
        for key in itertools.product(models, KINDS, areas)
    ]


def error_table(cells: Sequence[Cell]) -> str:
    """The mean errors; the better mode in bold."""
    lines = _head(["model", "edit", "area", "cached", "corrected", "auto", "auto / better", "took corrected"])
    for cell in cells:
        better = min(cell.cached, cell.corrected)
        modes = (f"**{value:.3f}**" if value == better else f"{value:.3f}" for value in (cell.cached, cell.corrected))
        ratio, taken = f"{1 + cell.excess:.2f}", f"{cell.corrected_taken:.0%}"
        lines.append(
            _row([cell.model, _TITLES[cell.kind], f"{cell.area:.1%}", *modes, f"{cell.auto:.3f}", ratio, taken])
        )
    return "\n".join(lines)


def estimate_table(samples: Sequence[Sample], calibrated: Mapping[str, float]) -> str:
    """How well errors are foreseen: rank correlations, and the share within a factor of two.

    Args:
        samples: the edits.
        calibrated: per model the correlation that its manifest states.
    """
    lines = _head(["model", "edits", "rank correlation", "within a factor of 2", "in the manifest"])
    for model, correlation in calibrated.items():
        own = [sample for sample in samples if sample.model == model]
        ratios = np.array([sample.expected / sample.auto for sample in own])
        near = float(np.mean((ratios > 0.5) & (ratios < 2.0)))
        lines.append(_row([model, str(len(own)), f"{foresight(own):.2f}", f"{near:.0%}", f"{correlation:.2f}"]))
    return "\n".join(lines)


def foresight(samples: Sequence[Sample]) -> float:
    """Rank correlation of the errors that ``auto`` foresaw and made."""
    return rank_correlation([sample.expected for sample in samples], [sample.auto for sample in samples])


def time_table(timings: Sequence[Timing]) -> str:
    """Times of the modes, and what choosing adds."""
    lines = _head(["model", "area", "cached, ms", "corrected, ms", "auto, ms", "took", "choosing, ms", "extra"])
    for timing in timings:
        times = (f"{value:.1f}" for value in (timing.cached, timing.corrected, timing.auto))
        choice = (f"{timing.choice:.2f}", f"{timing.extra:.1%}")
        lines.append(_row([timing.model, f"{timing.area:.1%}", *times, timing.taken, *choice]))
    return "\n".join(lines)


def _cell(samples: Sequence[Sample]) -> Cell:
    first = samples[0]
    errors = {
        mode: float(np.mean([getattr(sample, mode) for sample in samples])) for mode in ("cached", "corrected", "auto")
    }
    taken = float(np.mean([sample.taken == "corrected" for sample in samples]))
    return Cell(first.model, first.kind, first.area, **errors, corrected_taken=taken)


def _head(titles: Sequence[str]) -> list[str]:
    return [_row(titles), _row(["---"] * len(titles))]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
