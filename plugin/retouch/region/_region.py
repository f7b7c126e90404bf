"""What the user wants changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.bundle import GridSpec
from retouch.errors import RegionError
from retouch.region._active import ActiveRows
from retouch.region._coverage import covered_cells, prefix_sums
from retouch.region._policy import DEFAULT_POLICY, RegionPolicy, resolve_policy
from retouch.region._selection import (
    checked_mask,
    checked_shape,
    mask_from_boxes,
    mask_from_difference,
    mask_from_rows,
    mask_from_spans,
)


@dataclass(frozen=True, eq=False)
class Region:
    """The positions of the editable input that an edit changes, and how far around them it computes.

    Build one with :meth:`from_mask`, :meth:`from_boxes`, :meth:`from_spans`, :meth:`from_rows`,
    :meth:`from_difference` or :meth:`full`. These take ``policy``: a :class:`RegionPolicy` or the name of one in
    ``POLICIES``.

    Attributes:
        mask: the selected positions, before any dilation (a read-only boolean array).
        policy: the region's policy.
    """

    mask: NDArray[np.bool_] = field(repr=False)
    policy: RegionPolicy

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", checked_mask(self.mask))
        object.__setattr__(self, "policy", resolve_policy(self.policy, self.mask.ndim))

    @classmethod
    def from_mask(cls, mask: ArrayLike, policy: str | RegionPolicy = DEFAULT_POLICY) -> Region:
        """The region where a boolean array of the editable grid's dims is true."""
        array = checked_mask(mask)
        return cls(array, resolve_policy(policy, array.ndim))

    @classmethod
    def from_boxes(
        cls, boxes: Iterable[Sequence[int]], shape: Sequence[int], policy: str | RegionPolicy = DEFAULT_POLICY
    ) -> Region:
        """The union of boxes ``(y0, x0, y1, x1)`` on an editable grid of that shape; ``y1`` and ``x1`` are excluded.

        On a grid of another number of axes a box lists the first position along every axis, then the stop along
        every axis.
        """
        return cls.from_mask(mask_from_boxes(boxes, shape), policy)

    @classmethod
    def from_spans(
        cls, spans: Iterable[Sequence[int]], length: int, policy: str | RegionPolicy = DEFAULT_POLICY
    ) -> Region:
        """The union of spans ``(start, stop)`` of a token sequence of that length; ``stop`` is excluded."""
        return cls.from_mask(mask_from_spans(spans, length), policy)

    @classmethod
    def from_rows(cls, rows: ArrayLike, shape: Sequence[int], policy: str | RegionPolicy = DEFAULT_POLICY) -> Region:
        """The positions with those row-major numbers on an editable grid of that shape."""
        return cls.from_mask(mask_from_rows(rows, shape), policy)

    @classmethod
    def full(cls, shape: Sequence[int], policy: str | RegionPolicy = DEFAULT_POLICY) -> Region:
        """All positions of an editable grid of that shape."""
        return cls.from_mask(np.ones(checked_shape(shape), np.bool_), policy)

    @classmethod
    def from_difference(
        cls, before: ArrayLike, after: ArrayLike, *, threshold: float = 0.0, policy: str | RegionPolicy = DEFAULT_POLICY
    ) -> Region:
        """The positions at which two images differ by more than a threshold, in any channel.

        Args:
            before: an image, [height, width] or [height, width, channels].
            after: another one of that shape.
            threshold: in the images' own units.
            policy: the region's policy.

        Raises:
            RegionError: the images are not of one shape, or differ nowhere by that much.
        """
        return cls.from_mask(mask_from_difference(before, after, threshold), policy)

    def resampled(self, shape: Sequence[int]) -> Region:
        """The region on a grid of another resolution: a position is selected if it covers any that is.

        Args:
            shape: the other grid's dims, like ``(64, 64)`` latents for a mask of 512 x 512 pixels.

        Raises:
            RegionError: the shape has another number of axes.
        """
        dims = checked_shape(shape)
        if len(dims) != self.mask.ndim:
            raise RegionError(f"Expected {self.mask.ndim} dims like those of the mask, got {dims}.")
        return Region(covered_cells(prefix_sums(self.mask), dims, dilation=0, cell_dilation=0), self.policy)

    @property
    def area(self) -> float:
        """Share of the positions that the mask selects, before dilation."""
        return float(self.mask.mean())

    def active(self, grids: Sequence[GridSpec], editable: GridSpec) -> ActiveRows:
        """The rows of every grid that an edit of this region computes.

        Args:
            grids: the grids; a resolution level whose number of axes is not that of the editable grid is active as a
                whole.
            editable: the grid of the editable input.

        Raises:
            RegionError: the mask does not have the editable grid's dims.
        """
        if self.mask.shape != editable.dims:
            raise RegionError(
                f"Expected a region of shape {editable.dims}, the dims of the editable grid {editable.id!r}, "
                f"got {self.mask.shape}; give the mask at the resolution of the editable input, "
                "without batch and channel axes."
            )
        sums = prefix_sums(self.mask)
        masks = {grid.id: self._cells(grid, editable, sums) for grid in grids if grid.parent is None}
        return ActiveRows.from_masks(masks, grids)

    def _cells(self, grid: GridSpec, editable: GridSpec, sums: NDArray[np.int64]) -> NDArray[np.bool_]:
        coarser = grid.rows < editable.rows
        if len(grid.dims) != len(editable.dims) or (coarser and grid.rows <= self.policy.dense_rows):
            return np.ones(grid.dims, np.bool_)
        cell_dilation = self.policy.grid_dilation if coarser else 0
        return covered_cells(sums, grid.dims, dilation=self.policy.dilation, cell_dilation=cell_dilation)
