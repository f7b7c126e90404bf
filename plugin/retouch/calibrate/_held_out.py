"""How well errors are foreseen: edits held out, by rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from retouch.bundle import MomentsSpec
from retouch.session import MOMENTS, MomentForesight

FOLDS = 5


def held_out_correlation(spec: MomentsSpec, groups: Sequence[int]) -> float:
    """Rank correlation (Spearman) of foreseen and measured errors, of the mode that is foreseen to err less.

    Every fifth group is foreseen from the others, in turn.

    Args:
        spec: the measured edits.
        groups: per edit the number of its base run.
    """
    foreseen: list[float] = []
    found: list[float] = []
    for fold in range(FOLDS):
        held = [place for place, group in enumerate(groups) if group % FOLDS == fold]
        rest = [place for place, group in enumerate(groups) if group % FOLDS != fold]
        if not held or not rest:
            continue
        known = MomentForesight(_some(spec, rest))
        for place in held:
            expected = known.before(spec.shifts[place])
            mode = min(MOMENTS, key=lambda one: expected[one])
            foreseen.append(known.after(mode, spec.shifts[place], spec.spills[mode][place]))
            found.append(spec.errors[mode][place])
    return rank_correlation(foreseen, found)


def _some(spec: MomentsSpec, places: Sequence[int]) -> MomentsSpec:
    """Some of the measured edits."""

    def chosen(values: Mapping[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
        return {mode: tuple(own[place] for place in places) for mode, own in values.items()}

    shifts = tuple(spec.shifts[place] for place in places)
    return replace(spec, shifts=shifts, errors=chosen(spec.errors), spills=chosen(spec.spills))


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation of values without ties; 0 for fewer than three."""
    if len(one) < 3:
        return 0.0
    ranks = [np.argsort(np.argsort(values)).astype(np.float64) for values in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
