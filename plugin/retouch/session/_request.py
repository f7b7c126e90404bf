"""One of several edits that are asked for at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
