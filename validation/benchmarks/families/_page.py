"""The figures of the families as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from retouch.validation.benchmarks._page import table
from retouch.validation.benchmarks.families._family import RATIO_OF_NOTHING, RATIO_PER_FLOP
from retouch.validation.benchmarks.families._figures import Edit, Figures

_INTRODUCTION = """# Families of models

What edits of every family that exports cost, against a bound and, for two models, against targets. **This page is
written by `make bench-families`; do not edit it.**
"""
_METHOD = """
Every family is a model of its class with random weights: the kinds of layers and the rows that models of the family
have, fewer or narrower layers. Rows matter: a matrix product reads its weights whatever the number of rows, which costs
as much as computing some twenty of them, so that edits of models with few rows cost more than their share.

An edit of a centred block takes turns with the bundle's full model and the original graph, in one process; every
figure is the median of {repeats} rounds after two to warm up. Full is the faster of the two full models. "CPU, 1
thread" is CPU time of the process, "wall, 2 threads" time on the clock. Region policy `exact`, GroupNorm moments
`cached`, no dense fallback.

- *rows*: positions of the grids that convolutions and matrix products run on.
- *dense*: heavy nodes (convolutions, matrix products, attention) that edits compute whole; there should be none.
- *error*: the largest difference of an edit from the masked reference over blocks and scattered rows, relative to the
  output's largest value, as the export measured it. {error} is allowed.
- *bound*: {slope:g} x FLOP share + {offset:g}. A ratio above it, or above a target, is marked **missed**.
"""
_ALLOWED = 2e-5


def page(facts: Mapping[str, object], figures: Sequence[Figures]) -> str:
    """The page in Markdown.

    Args:
        facts: where and how it was measured.
        figures: what was measured, one per family.
    """
    method = _METHOD.format(
        repeats=facts["rounds"], error=f"{_ALLOWED:.0e}", slope=RATIO_PER_FLOP, offset=RATIO_OF_NOTHING
    )
    parts = [
        _INTRODUCTION,
        table(("", ""), facts.items()),
        method.lstrip(),
        "## Models\n",
        table(("family", "rows", "GFLOP", "coverage", "dense", "error", "measured"), map(_model, figures)),
        *_earlier(figures),
        "## Edits\n",
        _verdict(figures),
        table(
            ("family", "area", "FLOP share", "full ms", "edit ms", "CPU, 1 thread", "bound", "", "wall, 2 threads"),
            (row for item in figures for row in _edits(item)),
        ),
        *_targets(figures),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _model(item: Figures) -> tuple[str, ...]:
    rows, error = " / ".join(f"{count:,}" for count in item.rows), f"{item.error:.1e}"
    return (
        item.title,
        rows,
        f"{item.gflop:.3g}",
        f"{item.coverage:.1%}",
        str(item.dense),
        error if item.error <= _ALLOWED else f"**{error}**",
        item.date,
    )


def _earlier(figures: Sequence[Figures]) -> Iterator[str]:
    titles = ", ".join(item.title for item in figures if item.earlier)
    if titles:
        yield f"Exported by an earlier state of the exporter than there was when they were measured: {titles}.\n"


def _verdict(figures: Sequence[Figures]) -> str:
    edits = [edit for item in figures for edit in item.edits]
    return f"{sum(edit.ratio <= edit.bound for edit in edits)} of {len(edits)} edits are within the bound.\n"


def _edits(item: Figures) -> Iterator[tuple[str, ...]]:
    for edit in item.edits:
        yield (
            item.title,
            f"{edit.area:.0%}",
            f"{edit.flop_ratio:.3f}",
            f"{edit.full_ms:.1f}",
            f"{edit.edit_ms:.1f}",
            f"{edit.ratio:.3f}",
            f"{edit.bound:.3f}",
            _word(edit.ratio, edit.bound),
            f"{edit.wall_ratio:.3f}",
        )


def _targets(figures: Sequence[Figures]) -> Iterator[str]:
    rows = [(item.title, edit) for item in figures for edit in item.edits if edit.target is not None]
    if rows:
        yield "## Targets\n"
        yield "On one thread. A target is met if edits stay under it without kernels of Retouch's own too.\n"
        yield table(
            ("model", "area", "ratio", "stock kernels", "target", ""), (_target(title, edit) for title, edit in rows)
        )


def _target(title: str, edit: Edit) -> tuple[str, ...]:
    target, stock = edit.target or 0.0, edit.stock_ratio
    row = title, f"{edit.area:.0%}", f"{edit.ratio:.3f}"
    if stock is None:
        return *row, "not measured", f"{target:.3f}", "open" if edit.ratio <= target else _word(edit.ratio, target)
    return *row, f"{stock:.3f}", f"{target:.3f}", _word(max(edit.ratio, stock), target)


def _word(ratio: float, limit: float) -> str:
    return "met" if ratio <= limit else "**missed**"
