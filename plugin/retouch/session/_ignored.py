"""What an edit was fed beyond the rows it computes."""

from __future__ import annotations

import numpy as np

from retouch.session._edit import Edit
from retouch.session._run import FEEDS
from retouch.session._runtime import Runtime


def ignored_positions(runtime: Runtime, edit: Edit) -> int:
    """The number of positions at which the editable feed differs from the base run's outside the active rows.

    There the edit keeps what the base run computed, as if the feed had not changed.
    """
    editable = runtime.manifest.editable
    base = runtime.store.get(edit.run, runtime.bundle.fingerprint, FEEDS)[editable.input]
    fed = edit.feeds[editable.input]
    if fed is base:
        return 0
    different = fed.numpy() != base.numpy()
    others = tuple(axis for axis in range(different.ndim) if axis not in editable.axes)
    changed = different.any(axis=others)
    return int(np.count_nonzero(changed & ~edit.region.active.mask(editable.grid)))
