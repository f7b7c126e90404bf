"""A Polygraphy runner that takes the feeds of the original model: the first are a base run, the others edits of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from polygraphy.backend.base import BaseRunner
from polygraphy.common import TensorMetadata
from polygraphy.datatype import DataType

from retouch.bundle import Bundle
from retouch.region import Region, RegionPolicy
from retouch.session import EditSession, GroupNormMode, Run

Feeds = Mapping[str, NDArray[Any]]


class EditsRunner(BaseRunner):  # type: ignore[misc] # Polygraphy has no types
    """Runs edits where other runners run the full model.

    The first feeds after activation make a base run. All others are edits of it, of the region that was asked for or
    else of the positions whose feeds differ; if these do not, or a condition does, of all positions.
    """

    def __init__(
        self,
        bundle: str,
        boxes: Sequence[Sequence[int]] = (),
        policy: str | RegionPolicy = "balanced",
        group_norm: GroupNormMode = "corrected",
        follow: bool = False,
        threads: int | None = None,
        name: str | None = None,
    ) -> None:
        """Stores the arguments.

        Args:
            bundle: directory of the bundle.
            boxes: what edits compute, as in ``Region.from_boxes``; nothing means where feeds differ.
            policy: how far around regions edits compute.
            group_norm: how GroupNorm sees edits. Only ``corrected`` moments give the full model's output where
                everything changes.
            follow: whether every edit is based on the one before, not on the first feeds.
            threads: threads per run.
            name: the runner's name.
        """
        super().__init__(name=name, prefix="retouch-edit-runner")
        self._path, self._boxes, self._policy, self._follow = bundle, boxes, policy, follow
        self._mode, self._threads = group_norm, threads
        self._session: EditSession | None = None
        self._run: Run | None = None

    def activate_impl(self) -> None:
        """Opens the bundle."""
        bundle = Bundle.open(self._path)
        self._session = EditSession(bundle, threads=self._threads, group_norm=self._mode).open()

    def deactivate_impl(self) -> None:
        """Closes the session."""
        if self._session is not None:
            self._session.close()
        self._session, self._run = None, None

    def get_input_metadata_impl(self) -> TensorMetadata:
        """The model's inputs."""
        metadata = TensorMetadata()
        for spec in self._opened().bundle.manifest.inputs:
            metadata.add(spec.name, dtype=DataType.from_dtype(np.dtype(spec.dtype)), shape=spec.shape)
        return metadata

    def infer_impl(self, feed_dict: Feeds) -> dict[str, NDArray[Any]]:
        """The outputs of a base run, or of an edit."""
        start = time.perf_counter()
        outputs = self._outputs({name: np.asarray(array) for name, array in feed_dict.items()})
        self.inference_time = time.perf_counter() - start
        return {name: np.array(array) for name, array in outputs.items()}

    def _outputs(self, feeds: Feeds) -> Feeds:
        session = self._opened()
        if self._run is None:
            self._run = session.base(feeds)
            return self._run.outputs
        base, region = self._run, self._region(self._run.feeds, feeds)
        result = session.edit(base, feeds, region=region, fallback=False, record=self._follow)
        if self._follow:
            self._run = result.commit()
            base.close()
        return result.outputs

    def _region(self, base: Feeds, feeds: Feeds) -> Region:
        manifest = self._opened().bundle.manifest
        editable = manifest.editable
        dims = manifest.grid(editable.grid).dims
        if self._boxes:
            return Region.from_boxes(self._boxes, dims, self._policy)
        differs = np.moveaxis(base[editable.input] != feeds[editable.input], editable.axes, range(len(editable.axes)))
        mask = differs.reshape(*dims, -1).any(axis=-1)
        others = [name for name in feeds if name != editable.input]
        if not mask.any() or any(not np.array_equal(base[name], feeds[name]) for name in others):
            return Region.full(dims, self._policy)
        return Region.from_mask(mask, self._policy)

    def _opened(self) -> EditSession:
        assert self._session is not None, "Polygraphy activates a runner first"
        return self._session
