"""What part of a model's FLOPs falls to each plan."""

from __future__ import annotations

from retouch.bundle import Bundle

_COMPARED = ("incremental", "hoisted", "densified")


def shares(bundle: Bundle) -> dict[str, float]:
    """Share of the FLOPs per plan, constants left out: whether they are folded is up to who made the graph."""
    flops = dict.fromkeys(_COMPARED, 0)
    for row in bundle.manifest.plan:
        if row.plan in flops:
            flops[row.plan] += row.flops
    return {plan: count / sum(flops.values()) for plan, count in flops.items()}
