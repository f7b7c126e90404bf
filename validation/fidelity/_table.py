"""The study as a table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from retouch.session import MOMENTS
from retouch.validation.fidelity._study import Sample, Study

_KINDS = ("pasted", "redrawn")


def markdown(study: Study, samples: Sequence[Sample]) -> str:
    """PSNR inside, a table per mode of GroupNorm: the median over the terrains, in parentheses the worst."""
    return "\n\n".join(
        f"GroupNorm moments `{mode}`:\n\n" + _table(study, [sample for sample in samples if sample.group_norm == mode])
        for mode in MOMENTS
    )


def _table(study: Study, samples: Sequence[Sample]) -> str:
    lines = _head(["edit", "patch", "sigma", "nothing recomputed", *study.policies])
    for kind, size, sigma in itertools.product(_KINDS, study.sizes, study.sigmas):
        own = [sample for sample in samples if (sample.kind, sample.size, sample.sigma) == (kind, size, sigma)]
        under = [[sample for sample in own if sample.policy == policy] for policy in study.policies]
        inside = (_spread(edits, lambda sample: sample.psnr.inside) for edits in under)
        cells = (_spread(own, lambda sample: sample.kept), *inside)
        lines.append(_row([kind, f"{size}x{size}", f"{sigma}", *cells]))
    return "\n".join(lines)


def _spread(samples: Iterable[Sample], value: Callable[[Sample], float]) -> str:
    values = [value(sample) for sample in samples]
    return f"{np.median(values):.1f} ({min(values):.1f})"


def _head(titles: Sequence[str]) -> list[str]:
    return [_row(titles), _row(["---"] * len(titles))]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
