"""What a validation found, as plain figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from retouch.validation.accuracy._cases import Kind


@dataclass(frozen=True)
class ZoneFigures:
    """An edit against a full recomputation, in one zone.

    Attributes:
        psnr: peak signal-to-noise ratio in dB.
        cosine: cosine similarity.
        max_error: the largest absolute error.
    """

    psnr: float
    cosine: float
    max_error: float


@dataclass(frozen=True)
class OutputFigures:
    """One output of one edit.

    Attributes:
        name: the output.
        oracle_error: largest error against the oracle among active rows, as a share of the output's scale; ``None``
            without an oracle.
        oracle_bound: what is allowed of it.
        oracle_ulps: the error in units of the last place of the output's largest value.
        kept_identical: whether the rows that are not active are those of before; ``None`` if all are active.
        full_error: largest error against the full recomputation, as a share of the output's scale.
        full_bound: what is allowed of it, if the edit has to give the full model's output.
        zones: by zone, the edit against the full recomputation.
        unedited: what comes out inside if nothing is recomputed.
    """

    name: str
    oracle_error: float | None
    oracle_bound: float
    oracle_ulps: float | None
    kept_identical: bool | None
    full_error: float
    full_bound: float | None
    zones: Mapping[str, ZoneFigures]
    unedited: ZoneFigures


@dataclass(frozen=True)
class CaseFigures:
    """One edit.

    Attributes:
        suite: the suite that it belongs to.
        name: its name.
        kind: what it is for.
        group_norm: how GroupNorm saw it.
        area: share of the editable positions in its region.
        active: share of the editable positions that it computed.
        outputs: its outputs; none if they were not finite.
        faults: what is wrong, in words.
    """

    suite: str
    name: str
    kind: Kind
    group_norm: str
    area: float
    active: float
    outputs: tuple[OutputFigures, ...]
    faults: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Figures:
    """All edits.

    Attributes:
        cases: the edits.
        remarks: what was left out, in words.
    """

    cases: tuple[CaseFigures, ...]
    remarks: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return bool(self.cases) and not any(case.faults for case in self.cases)

    def of_kind(self, *kinds: Kind) -> tuple[CaseFigures, ...]:
        """The edits of some kinds that gave figures."""
        return tuple(case for case in self.cases if case.kind in kinds and case.outputs)
