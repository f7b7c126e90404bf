"""The inputs that say where in a sampling loop a call stands, and whether a call stands where another did."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Bundle, Manifest
from retouch.errors import BundleError, FeedError

_RECORD = "retouch.json"
_USUAL = ("timestep", "timesteps", "t", "sigma", "sigmas")

Arrays = Mapping[str, NDArray[Any]]


def step_inputs(bundle: Bundle, given: Collection[str] | None) -> tuple[str, ...]:
    """The names of the inputs that change from step to step.

    Args:
        bundle: the bundle.
        given: the names, or ``None`` for what the record of an exported pipeline says, else the usual names.

    Raises:
        FeedError: a name is not that of an input, or is that of the editable one.
        BundleError: the record cannot be read.
    """
    manifest = bundle.manifest
    names = [spec.name for spec in manifest.inputs if spec.name != manifest.editable.input]
    if given is None:
        known = _recorded(bundle)
        return tuple(name for name in names if name in (_USUAL if known is None else known))
    unknown = [name for name in given if name not in names]
    if unknown:
        raise FeedError(
            f"Expected steps to be among the inputs {', '.join(map(repr, names)) or 'none'}, got "
            f"{', '.join(map(repr, unknown))}. Name inputs that change from one call to the next; not the editable one."
        )
    return tuple(given)


def _recorded(bundle: Bundle) -> list[str] | None:
    """What the record of the pipeline that the bundle is part of says, if there is one."""
    component = bundle.path.resolve().parent
    path = component.parent / _RECORD
    if not path.is_file():
        return None
    try:
        components = json.loads(path.read_text(encoding="utf-8"))["components"]
        steps: list[str] | None = components[component.name]["steps"] if component.name in components else None
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"Expected {path} to be the record of an exported pipeline, got {type(error).__name__}: {error}. "
            "Export the pipeline again, or name the inputs with steps=."
        ) from error
    return steps


def check_step(
    manifest: Manifest, steps: Sequence[str], number: int, recorded: Sequence[Arrays], feeds: Arrays
) -> None:
    """Raise a FeedError if a call does not stand where the recorded call of that number did.

    Args:
        manifest: the bundle's manifest.
        steps: the names of the inputs that change from step to step.
        number: the call's number.
        recorded: the feeds of all recorded calls.
        feeds: the call's feeds.
    """
    own = recorded[number]
    for name in steps:
        if not _equal(own[name], feeds[name]):
            raise FeedError(
                f"Expected call {number + 1} of the edit to have the {name!r} of the recording's, {_shown(own[name])}, "
                f"got {_shown(feeds[name])}. An edit repeats the recording step by step: same scheduler, same number "
                "of steps, same strength."
            )
    others = [name for name in feeds if name != manifest.editable.input]
    if _agree(own, feeds, others):
        return
    places = [place for place, other in enumerate(recorded) if _agree(other, feeds, others)]
    if places:
        raise FeedError(
            f"Expected call {number + 1} of the edit to be the recording's, got the conditions of the recording's call "
            f"{places[0] + 1}. An edit makes its calls in the order of the recording: guidance with two calls must not "
            "swap them."
        )


def _agree(one: Arrays, other: Arrays, names: Sequence[str]) -> bool:
    return all(_equal(one[name], other[name]) for name in names)


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return np.array_equal(one.reshape(-1).view(np.uint8), other.reshape(-1).view(np.uint8))


def _shown(array: NDArray[Any]) -> str:
    return np.array2string(array, threshold=4)
