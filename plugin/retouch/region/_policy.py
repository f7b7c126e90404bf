"""How far around a region an edit computes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from retouch.errors import RegionError


@dataclass(frozen=True)
class RegionPolicy:
    """The fidelity knob of a region: more active rows cost time and bring an edit closer to a full recompute.

    Attributes:
        dilation: one-position steps by which the region grows at the input grid, diagonals included.
        grid_dilation: one-position steps by which it grows again, after down-sampling, at every coarser grid.
        dense_rows: coarser grids of at most so many rows are active as a whole.
    """

    dilation: int
    grid_dilation: int = 0
    dense_rows: int = 0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise RegionError(
                    f"Expected RegionPolicy.{field.name} to be an integer of at least 0, got {value!r}; "
                    "use 0 to switch it off."
                )


POLICIES: Mapping[str, RegionPolicy] = MappingProxyType(
    {
        "exact": RegionPolicy(dilation=0),
        "fast": RegionPolicy(dilation=1),
        "balanced": RegionPolicy(dilation=4),
        "faithful": RegionPolicy(dilation=8, dense_rows=256),
    }
)
"""The named policies. On one-dimensional grids (tokens) they do not dilate."""

DEFAULT_POLICY = "balanced"


def resolve_policy(policy: str | RegionPolicy, ndim: int) -> RegionPolicy:
    """The policy that a name stands for on a grid of ``ndim`` axes; a policy object is returned as it is.

    Neighbouring tokens are not more alike than distant ones, so names mean no dilation on one axis.
    """
    if isinstance(policy, RegionPolicy):
        return policy
    given: object = policy
    if not isinstance(given, str) or given not in POLICIES:
        raise RegionError(
            f"Expected a region policy among {', '.join(map(repr, POLICIES))} or a RegionPolicy, got {policy!r}."
        )
    named = POLICIES[policy]
    return dataclasses.replace(named, dilation=0, grid_dilation=0) if ndim == 1 else named
