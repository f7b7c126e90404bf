"""The study as tables in Markdown, by the name of their block in the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from retouch.validation.benchmarks import table
from retouch.validation.generations._cases import Kind
from retouch.validation.generations._cost import Cost
from retouch.validation.generations._quality import Outcome
from retouch.validation.generations._trade import Trade

__all__ = ["tables"]


def tables(costs: Sequence[Cost], outcomes: Sequence[Outcome], trades: Sequence[Trade]) -> Mapping[str, str]:
    """The blocks ``cost``, ``quality`` and ``memory``; those of which nothing was measured are left out."""
    blocks = {"cost": (costs, _costs), "quality": (outcomes, _quality), "memory": (trades, _memory)}
    return {name: make(measured) for name, (measured, make) in blocks.items() if measured}  # type: ignore[operator]


def _costs(costs: Sequence[Cost]) -> str:
    head = (
        "",
        "area",
        "policy",
        "edit ms",
        "again ms",
        "times cheaper",
        "on stock kernels",
        "recording adds",
        "pays after",
    )
    rows = [
        (
            f"{name}, {cost.threads} thread{'s' if cost.threads > 1 else ''}",
            f"{cost.area:.1%}",
            cost.policy,
            f"{getattr(cost.edit, clock):.0f}",
            f"{getattr(cost.again, clock):.0f}",
            f"**{getattr(cost.again, clock) / getattr(cost.edit, clock):.2f}**",
            f"{getattr(cost.again, clock) / getattr(cost.edit_stock, clock):.2f}",
            f"{cost.overhead:.0%}",
            f"{cost.pays_after:.2f} edits",
        )
        for cost in costs
        for name, clock in (("CPU time", "cpu_ms"), ("time on the clock", "wall_ms"))
    ]
    return table(head, rows)


def _quality(outcomes: Sequence[Outcome]) -> str:
    kinds = {kind.value: (kind,) for kind in Kind} | {"all": tuple(Kind)}
    groups = {
        (name, policy): [item for item in outcomes if item.kind in members and item.policy == policy]
        for policy in dict.fromkeys(item.policy for item in outcomes)
        for name, members in kinds.items()
    }
    rows = [
        (
            name,
            policy,
            len(group),
            f"{np.mean([item.shown for item in group]):.0%}",
            f"{np.mean([item.shown_by_full_model for item in group]):.0%}",
            f"{np.mean([item.shown_anew for item in group]):.0%}",
            f"{np.median([item.psnr for item in group]):.1f}",
            f"{np.percentile([item.psnr for item in group], 10):.1f}",
            f"{sum(item.latents_kept for item in group)} of {len(group)}",
            max(item.reach for item in group),
        )
        for (name, policy), group in groups.items()
        if group
    ]
    head = (
        *("object", "policy", "edits", "edit shows it", "full model, frozen latents", "generated again"),
        *("dB inside, median", "worst tenth", "latents kept", "farthest changed pixel"),
    )
    return table(head, rows)


def _memory(trades: Sequence[Trade]) -> str:
    rows = [
        (
            trade.recording,
            f"{trade.strength:.2f}",
            f"{trade.states_bytes / 2**20:.0f}",
            trade.staleness,
            f"{trade.edit_ratio:.2f}",
            f"{trade.psnr:.1f}",
            f"{trade.shown:.0%}",
            f"{trade.shown_by_full_model:.0%}",
        )
        for trade in trades
    ]
    head = (
        *("states kept of", "strength", "states MiB", "staleness", "edit / again"),
        *("dB inside, median", "edit shows it", "full model shows it"),
    )
    return table(head, rows)
