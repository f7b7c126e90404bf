"""Where an edit changes its editable input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import EditableSpec
from retouch.engines import Value
from retouch.session._shift import channels_first


@dataclass(frozen=True, eq=False)
class Change:
    """Where an edit changes its editable input; masks shaped like the editable positions.

    Attributes:
        computed: the positions that change and that the edit computes.
        ignored: the number of other positions that change: there the edit keeps what the base run computed.
    """

    computed: NDArray[np.bool_]
    ignored: int


def change_of(
    editable: EditableSpec, kept: Mapping[str, Value], feeds: Mapping[str, Value], active: NDArray[np.bool_]
) -> Change | None:
    """What changes from a run's feeds to an edit's, ``None`` if the editable feed is the very value that the run has.

    Args:
        editable: the editable input.
        kept: the run's feeds.
        feeds: the edit's.
        active: the positions that the edit computes.
    """
    before, after = kept[editable.input], feeds[editable.input]
    if after is before:
        return None
    positions = channels_first(after.numpy() != before.numpy(), editable.axes).any(0)
    computed = positions & active
    return Change(computed, int(np.count_nonzero(positions) - np.count_nonzero(computed)))
