"""One of several edits that are asked for at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.errors import RetouchError
from retouch.region import Region, RegionPolicy


@dataclass(frozen=True, eq=False)
class EditRequest:
    """An edit for :meth:`EditSession.edit_many`; see :meth:`EditSession.edit`.

    Attributes:
        region: what to compute: a region, or a boolean mask of the editable positions.
        feeds: the feeds that change.
        policy: how far around the region to compute; ``None`` means the region's own, for a mask the default.
    """

    region: Region | NDArray[np.bool_]
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
