"""Many edits of one session: other regions, other feeds, commits, and base runs that come and go."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from retouch.bench import resident
from retouch.calibrate import block_region, sample_feeds
from retouch.errors import RetouchError
from retouch.region import Region
from retouch.session import EditSession

__all__ = ["Sample", "growth", "soak"]

_EDITS_PER_RUN = 50
_EDITS_PER_COMMIT = 10
_AREAS = (0.01, 0.02, 0.05, 0.1)


@dataclass(frozen=True)
class Sample:
    """Bytes in memory after some edits."""

    edits: int
    nbytes: int


def soak(session: EditSession, edits: int, samples: int = 40) -> Iterator[Sample]:
    """The memory of this process while that many edits are made, so many times.

    Every edit has a region and feeds of its own; every tenth is committed and dropped, and every fifty there is another
    base run.
    """
    manifest = session.bundle.manifest
    dims, editable = manifest.grid(manifest.editable.grid).dims, manifest.editable.input
    rng = np.random.default_rng(0)
    feeds = [sample_feeds(manifest, seed=seed) for seed in range(4)]
    run = session.base(feeds[0])
    for number in range(1, edits + 1):
        if number % _EDITS_PER_RUN == 0:
            session.drop(run)
            run = session.base(feeds[int(rng.integers(4))])
        block = block_region(dims, float(rng.choice(_AREAS)), "exact")
        shifts = [int(rng.integers(size)) for size in dims]
        region = Region.from_mask(np.roll(block.mask, shifts, range(len(dims))), "exact")
        changed = {editable: feeds[int(rng.integers(4))][editable]}
        result = session.edit(run, changed, region=region, fallback=False)
        if number % _EDITS_PER_COMMIT == 0:
            session.drop(result.commit())
        if number % max(1, edits // samples) == 0:
            yield Sample(number, resident().now)
    session.drop(run)


def growth(samples: Sequence[Sample]) -> float:
    """By what share memory grew from the second quarter to the last one; the first is for what is kept once.

    Raises:
        RetouchError: there are fewer than eight samples.
    """
    if len(samples) < 8:
        raise RetouchError(f"Expected at least 8 samples of memory, got {len(samples)}. Make more edits.")
    quarter = len(samples) // 4
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    middle = [statistics.median(sample.nbytes for sample in part) for part in (before, after)]
    return middle[1] / middle[0] - 1
