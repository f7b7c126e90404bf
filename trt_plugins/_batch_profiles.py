"""The open batch as a dim of profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retouch.bundle import BATCH, ProfileSpec
from retouch.errors import BuildRequestError
from retouch.trt_plugins._open_dims import Shape
from retouch.trt_plugins._options import BatchRange

__all__ = ["at_usual_batch", "with_batches"]


def at_usual_batch(shapes: Mapping[str, Shape], batch: int | None) -> dict[str, Shape]:
    """The shapes with the batch that a bundle was exported for in the place of an open one."""
    return {
        name: tuple(batch if dim == BATCH and batch is not None else dim for dim in shape)
        for name, shape in shapes.items()
    }


def with_batches(profiles: Sequence[ProfileSpec], batch: BatchRange, usual: int) -> tuple[ProfileSpec, ...]:
    """The profiles, each for every batch of a range.

    Args:
        profiles: the profiles, without a batch.
        batch: the range.
        usual: the batch that the bundle was exported for, for which engines are tuned.

    Raises:
        BuildRequestError: the range leaves that one out, which sessions run if they are not told otherwise.
    """
    if not batch.least <= usual <= batch.most:
        raise BuildRequestError(
            f"Expected a range of batches with the bundle's own, which is {usual}, got {batch.least}..{batch.most}. "
            "Make it larger, or build a bundle that was exported for another batch."
        )
    sizes = (batch.least, usual, batch.most)
    return tuple(ProfileSpec(profile.rows, {**profile.dims, BATCH: sizes}) for profile in profiles)
