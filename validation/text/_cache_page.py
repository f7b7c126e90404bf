"""The figures of caches as tables and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from retouch.validation.text._cache_cases import NO_CACHE

if TYPE_CHECKING:
    from retouch.validation.text._caches import CacheFigures

__all__ = ["Timings", "draw_curve", "write_page"]

_LOSS_BOUND = 0.01


@dataclass(frozen=True)
class Timings:
    """CPU times in milliseconds.

    Attributes:
        plain: per text, of the graph without caches, by how many texts it reads at once.
        rows: of a forward, by how many rows it computes.
    """

    plain: Mapping[int, float]
    rows: Mapping[int, float]


def write_page(
    page: Path, curve: Sequence[CacheFigures], others: Sequence[CacheFigures], times: Timings, shape: str
) -> None:
    """Writes the tables into a page, and the picture beside it.

    Args:
        page: the file; a picture of the same name is written beside it.
        curve: every cache at every price.
        others: some of them on other texts.
        times: of the graph without caches, and of forwards.
        shape: what the network is.
    """
    picture = page.with_suffix(".png")
    draw_curve(picture, curve)
    base = curve[0]
    lines = [
        "# Caches of models with full attention: figures",
        "",
        "Written by `make text-caches`. [full-attention.md](full-attention.md) says what this means.",
        "",
        _about(base, shape),
        "",
        f"![FLOPs against loss of likelihood]({picture.name})",
        "",
        *_curve_table(curve),
        "",
        "## Where it pays, and where it does not",
        "",
        _about_others(times.plain),
        "",
        *_others_table(curve, others, times.plain),
        "",
        "What a forward costs:",
        "",
        f"| rows | {' | '.join(map(str, times.rows))} |",
        "|---" * (len(times.rows) + 1) + "|",
        f"| CPU time in ms | {' | '.join(f'{ms:.2f}' for ms in times.rows.values())} |",
        "",
    ]
    page.write_text("\n".join(lines), encoding="utf-8")


def _about(base: CacheFigures, shape: str) -> str:
    return (
        f"Network and texts of {shape}; held-out texts of {base.tokens} tokens, {base.per_forward:.0f} a forward, told "
        f"in the order that the network without a cache would choose. Without a cache a forward took "
        f"{base.cpu_ms:.1f} ms of CPU time, and the texts {base.nats:.3f} nats a token."
    )


def draw_curve(path: Path, curve: Sequence[CacheFigures]) -> None:
    """Draws FLOPs and time against the loss of likelihood."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    for axes, name, label in zip(
        figure.subplots(1, 2, sharey=True), ("flops", "cpu"), ("FLOPs", "CPU time"), strict=True
    ):
        for family in dict.fromkeys(row.family for row in curve if row.family != NO_CACHE):
            rows = sorted((row for row in curve if row.family == family), key=lambda row: getattr(row, name))
            prices, losses = [getattr(row, name) for row in rows], [100 * row.loss for row in rows]
            axes.plot(prices, losses, "o", label=family, markersize=5, alpha=0.8)
        axes.axhline(100 * _LOSS_BOUND, color="grey", linewidth=0.8, linestyle="--")
        axes.set_xlabel(f"{label}, of those without a cache")
        axes.set_yscale("symlog", linthresh=1)
        axes.set_xlim(left=0)
    figure.axes[0].set_ylabel("greater negative log-likelihood of held-out texts, %")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=9)
    figure.savefig(path, dpi=110)


def _curve_table(curve: Sequence[CacheFigures]) -> list[str]:
    heads = ("cache", "settings", "FLOPs", "CPU time", "loss", "right tokens", "mean age", "oldest")
    rows = [
        f"| {row.family} | {row.settings} | 1 / {1 / row.flops:.2f} | 1 / {1 / row.cpu:.2f} | {row.loss:+.2%} | "
        f"{row.right:.1%} | {row.mean_age:.1f} | {row.max_age} |"
        for row in curve
    ]
    return [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows]


def _about_others(plain: Mapping[int, float]) -> str:
    taken = ", ".join(f"{count} at once {ms:.1f} ms each" for count, ms in plain.items())
    return (
        "CPU time over that without a cache, and in brackets the loss of likelihood. Caches fill texts one after the "
        f"other; the plain graph reads several at once (texts of the longest kind: {taken}), which is what the last "
        "column compares with."
    )


def _others_table(
    curve: Sequence[CacheFigures], others: Sequence[CacheFigures], plain: Mapping[int, float]
) -> list[str]:
    first = {(row.family, row.settings): row for row in curve}
    columns = {(curve[0].tokens, curve[0].per_forward): first}
    for row in others:
        columns.setdefault((row.tokens, row.per_forward), {})[row.family, row.settings] = row
    cases = dict.fromkeys((row.family, row.settings) for row in others if row.family != NO_CACHE)
    heads = [f"{tokens} tokens, {per:.0f} a forward" for tokens, per in columns]
    heads.append(f"{max(plain)} texts of {curve[0].tokens}")
    lines = [f"| cache | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for case in cases:
        cells = [f"{rows[case].cpu:.2f} ({rows[case].loss:+.1%})" for rows in columns.values()]
        cells.append(f"{first[case].cpu_ms / plain[max(plain)]:.2f} ({first[case].loss:+.1%})")
        lines.append(f"| {', '.join(case)} | {' | '.join(cells)} |")
    return lines
