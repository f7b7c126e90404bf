"""A base run: its id, its outputs and its feeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Run:
    """A base run whose states a session's store keeps under ``id``.

    Attributes:
        id: the run id.
        bundle: fingerprint of the bundle.
        feeds: the inputs, as the model got them.
        outputs: the model's outputs.
    """

    id: str
    bundle: str
    feeds: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, NDArray[Any]]
