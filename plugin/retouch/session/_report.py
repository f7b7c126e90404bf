"""What an edit says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from retouch.engines.ort import WeightStorage
from retouch.region import POLICIES, RegionPolicy
from retouch.session._mode import Moments
from retouch.session._prepared import Source
from retouch.session._shift import Shift

EditPath = Literal["edit", "dense"]
Preparation = Literal["none", "reused", "computed", "partly"]


@dataclass(frozen=True)
class Seconds:
    """Wall time of an edit and of its parts.

    Attributes:
        total: from the call to the checked result.
        index: active rows and index inputs.
        prepare: inputs that depend only on the base run and the conditions.
        run: the engine.
        choose: what the edit moves, what error to expect, and which GroupNorm moments it takes.
    """

    total: float
    index: float
    prepare: float
    run: float
    choose: float


@dataclass(frozen=True)
class Report:
    """What an edit says about itself.

    Attributes:
        path: ``edit`` for the edit graph, ``dense`` for a full run merged with the base output.
        reason: why that path was taken.
        active_rows: per grid id, the number of rows computed.
        area: share of the editable positions inside the region, before dilation.
        flop_ratio: share of a full run's FLOPs that the edit graph computes.
        group_norm: the moments that GroupNorm used.
        group_norm_reason: why these.
        expected_error: the error to expect inside the region: mean of |edit - full recomputation| over the mean of
            |full recomputation - base run|, so 0.05 means that the edit is off by a twentieth of what it changes.
            Foreseen from the shift of the editable input's statistics, and from how much of what the edit changes lies
            outside of the region, by what similar edits erred when the bundle was calibrated; it tells hard edits from
            easy ones and is no bound. 0 for the dense fallback. ``None`` where no calibration speaks of it: models
            without GroupNorm, bundles whose modes were not calibrated, other conditions than the base run's, other
            policies than the default, no change at all.
        expected_from: what that is foreseen from, or why it is ``None``.
        shift: what the edit moves in the editable input; ``None`` for models without GroupNorm, if nothing moves, or
            if other conditions change as well.
        policy: the region's policy.
        states_used: number of kept states that were read.
        states_bytes: their size.
        prepared: whether prepared inputs were computed or reused, or partly so; ``none`` if there are none.
        seconds: wall time.
        engine: the engine's name.
        threads: threads per run.
        kernels: number of nodes per operator that ran on kernels of Retouch's own instead of stock ones.
        ignored: number of positions at which the editable feed changed outside the active rows; there the edit keeps
            what the base run has.
        stacked: number of edits that were computed in the same run; its time is ``seconds`` of each of them.
        prepared_by: the same for every group of prepared inputs, named after what it depends on: conditions, and
            ``states`` for those of the base run. A group is reused only for conditions with the same contents.
        weights: how the edit's kernels keep the model's weights.
        weights_error: the largest error that this adds to the output, as a share of the output's largest value, as it
            was measured when the bundle was calibrated (``calibrate_weights``). ``None`` where it was not.
        notes: what the engine says about the run: why it has no kernels of Retouch's, the profile it took, states that
            had to move to host memory.
    """

    path: EditPath
    reason: str
    active_rows: Mapping[str, int]
    area: float
    flop_ratio: float
    group_norm: Moments
    group_norm_reason: str
    policy: RegionPolicy
    states_used: int
    states_bytes: int
    prepared: Preparation
    seconds: Seconds
    engine: str
    threads: int
    expected_error: float | None
    expected_from: str
    shift: Shift | None
    kernels: Mapping[str, int]
    ignored: int = 0
    stacked: int = 1
    prepared_by: Mapping[str, Source] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    weights: WeightStorage = WeightStorage.FLOAT32
    weights_error: float | None = 0.0

    def __str__(self) -> str:
        rows = ", ".join(f"{grid}: {count}" for grid, count in self.active_rows.items())
        lines = {
            "path": f"{self.path} ({self.reason})" + (f", {self.stacked} edits in one run" if self.stacked > 1 else ""),
            "area": f"{self.area:.2%}, policy {policy_name(self.policy)}",
            "active rows": rows,
            "FLOPs": f"{self.flop_ratio:.1%} of a full run",
            "GroupNorm": f"{self.group_norm} ({self.group_norm_reason})",
            "expected": _expected(self.expected_error, self.expected_from),
            "states": f"{self.states_used}, {self.states_bytes / 2**20:.1f} MiB",
            "prepared": _prepared(self),
            "time": f"{1e3 * self.seconds.total:.1f} ms (index {1e3 * self.seconds.index:.1f}, "
            f"prepare {1e3 * self.seconds.prepare:.1f}, choose {1e3 * self.seconds.choose:.1f}, "
            f"run {1e3 * self.seconds.run:.1f})",
            "engine": f"{self.engine}, {self.threads} thread{'s' if self.threads > 1 else ''}",
        }
        if self.weights is not WeightStorage.FLOAT32:
            lines["weights"] = f"{self.weights}, {_added(self.weights_error)}"
        if self.notes:
            lines["notes"] = "; ".join(self.notes)
        if self.kernels:
            lines["kernels"] = ", ".join(f"{name}: {count}" for name, count in self.kernels.items())
        if self.ignored:
            lines["ignored"] = f"{self.ignored} changed positions of the editable feed outside the active rows"
        return "\n".join(f"{label:<12} {text}" for label, text in lines.items())


def _expected(error: float | None, basis: str) -> str:
    return f"unknown error ({basis})" if error is None else f"error of {error:.1%} of the change ({basis})"


def _added(error: float | None) -> str:
    if error is None:
        return "which adds an unknown error (calibrate_weights measures it)"
    return f"which added {error:.1e} of the output's scale when it was measured"


def policy_name(policy: RegionPolicy) -> str:
    """The name of a policy, or what it does."""
    named = next((name for name, other in POLICIES.items() if other == policy), None)
    return named or f"dilation {policy.dilation}, grid {policy.grid_dilation}, dense up to {policy.dense_rows} rows"


def summary(sources: Mapping[str, Source]) -> Preparation:
    """Where prepared inputs came from, in a word."""
    found = set(sources.values())
    if len(found) > 1:
        return "partly"
    return found.pop() if found else "none"


def _prepared(report: Report) -> str:
    parts = ", ".join(f"{name}: {source}" for name, source in report.prepared_by.items())
    return f"{report.prepared} ({parts})" if report.prepared == "partly" else report.prepared
