"""What an edit says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Path = Literal["edit", "dense"]
Prepared = Literal["reused", "computed", "none"]


@dataclass(frozen=True)
class Seconds:
    """Wall time of the parts of an edit, in seconds; ``total`` holds the others and the checks between them."""

    total: float
    index: float
    prepare: float
    run: float


@dataclass(frozen=True)
class Report:
    """How an edit was computed.

    Attributes:
        path: ``edit`` for the edit graph, ``dense`` for the full model.
        reason: why that path.
        area: share of the positions in the region, before dilation.
        active_rows: number of recomputed rows per grid.
        flop_ratio: share of the full model's FLOPs.
        group_norm: the GroupNorm mode.
        states: number of cached tensors that were used, and their bytes.
        prepared: whether the prepared values were ``reused``, ``computed``, or ``none`` exist.
        engine: the engine's name.
        seconds: where the time went.
    """

    path: Path
    reason: str
    area: float
    active_rows: Mapping[str, int]
    flop_ratio: float
    group_norm: str
    states: tuple[int, int]
    prepared: Prepared
    engine: str
    seconds: Seconds

    def __str__(self) -> str:
        rows = ", ".join(f"{grid}: {count}" for grid, count in self.active_rows.items())
        return (
            f"{self.path} ({self.reason}) in {1e3 * self.seconds.total:.1f} ms on {self.engine}; area {self.area:.2%}, "
            f"{self.flop_ratio:.2%} of the FLOPs; active rows {rows}; prepared values {self.prepared}"
        )
