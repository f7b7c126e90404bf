"""A case as the one dictionary of arrays that Polygraphy hands to every runner.

The edit's feeds have the names of the model's inputs, so that any runner of the original model takes what it knows and
leaves the rest: the feeds of the base run and the region.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Manifest, TensorSpec
from retouch.validation.accuracy._cases import Case
from retouch.validation.accuracy._feeds import Feeds

_BASE_PREFIX = "retouch.base."
_REGION = "retouch.region"


def to_feed_dict(case: Case) -> dict[str, NDArray[Any]]:
    """The arrays of a case."""
    base = {f"{_BASE_PREFIX}{name}": array for name, array in case.base.items()}
    return {**case.edit, **base, _REGION: case.region.mask}


def from_feed_dict(arrays: Mapping[str, NDArray[Any]]) -> tuple[Feeds, Feeds, NDArray[np.bool_]]:
    """Feeds of the base run, feeds of the edit, and the region."""
    base = {name.removeprefix(_BASE_PREFIX): v for name, v in arrays.items() if name.startswith(_BASE_PREFIX)}
    return base, {name: arrays[name] for name in base}, arrays[_REGION]


def case_inputs(manifest: Manifest) -> tuple[TensorSpec, ...]:
    """What a runner that sees base run and edit has for inputs."""
    base = (TensorSpec(f"{_BASE_PREFIX}{spec.name}", spec.dtype, spec.shape) for spec in manifest.inputs)
    dims = manifest.grid(manifest.editable.grid).dims
    return (*manifest.inputs, *base, TensorSpec(_REGION, "bool", dims))
