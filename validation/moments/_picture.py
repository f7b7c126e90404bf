"""Foreseen and measured errors as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retouch.validation.moments._study import Sample
from retouch.validation.moments._subjects import KINDS, SUBJECTS
from retouch.validation.moments._table import foresight

_MARKS = {"cached": "o", "corrected": "^"}


def draw(path: Path, samples: Sequence[Sample]) -> None:
    """Writes one panel per model: the error that ``auto`` made over the one it foresaw, by kind and moments taken."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    models = list(dict.fromkeys(sample.model for sample in samples))
    figure, panels = plt.subplots(1, len(models), figsize=(10, 4), layout="constrained", squeeze=False)
    for panel, model in zip(panels[0], models, strict=True):
        own = [sample for sample in samples if sample.model == model]
        for (colour, kind), (moments, mark) in ((k, m) for k in enumerate(KINDS) for m in _MARKS.items()):
            shown = [sample for sample in own if (sample.kind, sample.taken) == (kind, moments)]
            if shown:
                points = ([sample.expected for sample in shown], [sample.auto for sample in shown])
                panel.scatter(*points, s=20, marker=mark, color=f"C{colour}", label=f"{kind}, {moments}")
        ends = [min(min(s.expected, s.auto) for s in own), max(max(s.expected, s.auto) for s in own)]
        panel.plot(ends, ends, color="grey", linewidth=0.8)
        panel.set(xscale="log", yscale="log", xlabel="expected error", ylabel="measured error")
        panel.set_title(f"{SUBJECTS[model].title}: rank correlation {foresight(own):.2f}", fontsize=9)
        panel.legend(fontsize=7)
        panel.grid(alpha=0.3)
    figure.savefig(path, dpi=80)
    plt.close(figure)
