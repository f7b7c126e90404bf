"""One of several edits that are asked for at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.errors import RetouchError
from retouch.region import Region, RegionPolicy

RegionLike = Region | NDArray[np.bool_]
"""What is to be computed: a region, or a boolean mask of the editable positions."""

RegionsLike = RegionLike | Sequence[RegionLike | None]
"""The same, of all samples of a batch or of each; ``None`` leaves a sample as it is."""


@dataclass(frozen=True, eq=False)
class EditRequest:
    """An edit for :meth:`EditSession.edit_many`; see :meth:`EditSession.edit`.

    Attributes:
        region: what to compute: a region, or a boolean mask of the editable positions; or a list of them, one for each
            sample of a batch.
        feeds: the feeds that change.
        policy: how far around the region to compute; ``None`` means the region's own, for a mask the default.
    """

    region: RegionsLike
    feeds: Mapping[str, ArrayLike] = field(default_factory=dict)
    policy: str | RegionPolicy | None = None


def checked_requests(edits: Iterable[EditRequest]) -> list[EditRequest]:
    """The edits as a list.

    Raises:
        RetouchError: they are something else than edits.
    """
    given: object = edits
    found: list[object] = list(given) if isinstance(given, Iterable) else [given]
    requests = [item for item in found if isinstance(item, EditRequest)]
    if len(requests) < len(found) or not isinstance(given, Iterable):
        got = next((type(item).__name__ for item in found if not isinstance(item, EditRequest)), type(given).__name__)
        raise RetouchError(f"Expected a list of EditRequest, got {got}. Write [EditRequest(region, feeds), ...].")
    return requests
