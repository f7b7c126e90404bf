"""The three runners: the full model, the masked reference, and edit runs of a session."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from polygraphy.backend.base import BaseRunner
from polygraphy.backend.onnxrt import OnnxrtRunner
from polygraphy.common import TensorMetadata
from polygraphy.datatype import DataType

from retouch.bundle import Bundle
from retouch.errors import NonFiniteError
from retouch.region import Region, RegionPolicy
from retouch.session import EditSession, Moments, Run, WeightStorage
from retouch.validation.accuracy._feed_names import case_inputs, from_feed_dict
from retouch.validation.accuracy._feeds import Feeds
from retouch.validation.accuracy._full import FullSession
from retouch.validation.accuracy._reference import Reference
from retouch.validation.accuracy._steps_reference import same_feeds

FULL, ORACLE, EDIT, BEFORE = "full", "oracle", "edit", "before"

_BEFORE_PREFIX = "retouch.before."

Outputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class RunnerSettings:
    """What the runners of one suite have in common.

    Attributes:
        bundle: the bundle.
        policy: how far around regions edits compute.
        group_norm: how GroupNorm sees edits.
        chained: whether every edit is based on the one before.
        threads: threads per run.
        weights: how edits keep weights.
    """

    bundle: Bundle
    policy: str | RegionPolicy
    group_norm: Moments
    chained: bool
    threads: int | None
    weights: WeightStorage


def full_runner(model: Path, settings: RunnerSettings) -> OnnxrtRunner:
    """Polygraphy's own runner of ONNX Runtime, on the full model: it takes the edit's feeds and knows of no region."""
    names = [output.tensor.name for output in settings.bundle.manifest.outputs]
    return OnnxrtRunner(lambda: FullSession(model, names, settings.threads), name=FULL)


class _CaseRunner(BaseRunner, ABC):  # type: ignore[misc] # Polygraphy has no types
    """A runner that sees base run, edit and region."""

    def __init__(self, name: str, settings: RunnerSettings) -> None:
        super().__init__(name=name)
        self.settings = settings

    def get_input_metadata_impl(self) -> TensorMetadata:
        """Names, types and shapes of a case's arrays."""
        metadata = TensorMetadata()
        for spec in case_inputs(self.settings.bundle.manifest):
            metadata.add(spec.name, dtype=DataType.from_dtype(np.dtype(spec.dtype)), shape=spec.shape)
        return metadata

    def infer_impl(self, feed_dict: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The outputs of an edit."""
        base, edit, mask = from_feed_dict(feed_dict)
        region = Region.from_mask(mask, self.settings.policy)
        start = time.perf_counter()
        outputs = self.outputs(base, edit, region)
        self.inference_time = time.perf_counter() - start
        return {name: np.array(array) for name, array in outputs.items()}

    @abstractmethod
    def outputs(self, base: Feeds, edit: Feeds, region: Region) -> Outputs:
        """The outputs of an edit."""


class OracleRunner(_CaseRunner):
    """Runs the masked reference."""

    def __init__(self, settings: RunnerSettings, make: Callable[[], Reference]) -> None:
        super().__init__(ORACLE, settings)
        self._make = make
        self._reference: Reference | None = None

    def activate_impl(self) -> None:
        """Makes the reference."""
        self._reference = self._make()

    def deactivate_impl(self) -> None:
        """Lets the reference go."""
        self._reference = None

    def outputs(self, base: Feeds, edit: Feeds, region: Region) -> Outputs:
        """The outputs that the edit has to give."""
        assert self._reference is not None
        manifest = self.settings.bundle.manifest
        active = region.active(manifest.grids, manifest.grid(manifest.editable.grid))
        return self._reference.run(base, edit, active)


class EditRunner(_CaseRunner):
    """Runs edits in a session. Its outputs include those that the edit is based on; see :func:`split_before`.

    One base run serves all edits with the same base feeds. Where edits are chained, an edit whose base feeds are the
    feeds of the edit before is based on what that one committed.
    """

    def __init__(self, settings: RunnerSettings) -> None:
        super().__init__(EDIT, settings)
        self._session: EditSession | None = None
        self._run: Run | None = None
        self._feeds: Feeds = {}

    def activate_impl(self) -> None:
        """Opens the session."""
        made = self.settings
        self._session = EditSession(
            made.bundle, threads=made.threads, group_norm=made.group_norm, weights=made.weights
        ).open()

    def deactivate_impl(self) -> None:
        """Closes the session."""
        if self._session is not None:
            self._session.close()
        self._session, self._run, self._feeds = None, None, {}

    def outputs(self, base: Feeds, edit: Feeds, region: Region) -> Outputs:
        """The outputs of the edit, and of what it is based on."""
        run = self._based_on(base)
        before = {f"{_BEFORE_PREFIX}{name}": array for name, array in run.outputs.items()}
        assert self._session is not None
        try:
            # The dense fallback is the full model: what is to be judged is the edit graph.
            result = self._session.edit(run, edit, region=region, fallback=False, record=self.settings.chained)
        except NonFiniteError:
            return {**{name: _not_a_number(array) for name, array in run.outputs.items()}, **before}
        if self.settings.chained:
            self._keep(result.commit(), edit)
        return {**result.outputs, **before}

    def _based_on(self, base: Feeds) -> Run:
        if self._run is None or not same_feeds(self._feeds, base):
            assert self._session is not None
            self._keep(self._session.base(base), base)
        assert self._run is not None
        return self._run

    def _keep(self, run: Run, feeds: Feeds) -> None:
        previous, self._run, self._feeds = self._run, run, feeds
        if previous is not None:
            previous.close()


def _not_a_number(array: NDArray[Any]) -> NDArray[Any]:
    return np.full_like(array, np.nan) if array.dtype.kind == "f" else array


def split_before(outputs: Outputs) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """The outputs of an edit, and those of what it was based on."""
    before = {n.removeprefix(_BEFORE_PREFIX): v for n, v in outputs.items() if n.startswith(_BEFORE_PREFIX)}
    return {name: outputs[name] for name in outputs if not name.startswith(_BEFORE_PREFIX)}, before
