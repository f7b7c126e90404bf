"""Times edits of one run together and one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retouch.bundle import Manifest
from retouch.calibrate import Sample, block_region, interleaved, sample_feeds
from retouch.errors import RetouchError
from retouch.region import Region
from retouch.session import EditRequest, EditSession, Run

__all__ = ["StackTime", "measure_stack"]


@dataclass(frozen=True)
class StackTime:
    """What edits cost.

    Attributes:
        together: all of them by one call.
        alone: all of them, one call each.
        largest_error: between the results of both, relative to the output's scale.
    """

    together: Sample
    alone: Sample
    largest_error: float

    @property
    def ratio(self) -> float:
        """CPU time together over CPU time alone."""
        return self.together.cpu_ms / self.alone.cpu_ms


def measure_stack(session: EditSession, count: int, area: float, repeats: int) -> StackTime:
    """The time of so many edits, each of another block of that share of the positions, in turn both ways.

    Raises:
        RetouchError: the edits do not share a run.
    """
    manifest = session.bundle.manifest
    run = session.base(sample_feeds(manifest))
    try:
        return _measured(session, run, _requests(manifest, count, area), repeats)
    finally:
        session.drop(run)


def _measured(session: EditSession, run: Run, requests: Sequence[EditRequest], repeats: int) -> StackTime:
    together = session.edit_many(run, requests, fallback=False)
    alone = [_alone(session, run, request) for request in requests]
    if {result.report.stacked for result in together} != {len(requests)}:
        raise RetouchError(f"Expected {len(requests)} edits to share a run, got: {together[0].report.reason}.")
    errors = [
        float(np.abs(result.outputs[name] - expected).max() / np.abs(expected).max())
        for result, outputs in zip(together, alone, strict=True)
        for name, expected in outputs.items()
    ]
    times = interleaved(
        {
            "together": lambda: session.edit_many(run, requests, fallback=False),
            "alone": lambda: [_alone(session, run, request) for request in requests],
        },
        repeats,
    )
    return StackTime(times["together"], times["alone"], max(errors))


def _alone(session: EditSession, run: Run, request: EditRequest) -> dict[str, np.ndarray]:
    result = session.edit(run, request.feeds, region=request.region, fallback=False)
    return dict(result.outputs)


def _requests(manifest: Manifest, count: int, area: float) -> list[EditRequest]:
    dims, name = manifest.grid(manifest.editable.grid).dims, manifest.editable.input
    block, made = block_region(dims, area).mask, []
    for number in range(count):
        shifts = [size * number // count for size in dims]
        region = Region.from_mask(np.roll(block, shifts, range(len(dims))), "exact")
        made.append(EditRequest(region, {name: sample_feeds(manifest, seed=number + 1)[name]}))
    return made
