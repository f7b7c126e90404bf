"""What an open session holds."""

from __future__ import annotations

from dataclasses import dataclass

from retouch.bundle import Bundle, Manifest
from retouch.engines import Engine
from retouch.engines.ort import WeightStorage
from retouch.session._bindings import Bindings
from retouch.session._expectation import Expectations
from retouch.session._mode import GroupNormMode, kept_ids
from retouch.session._prepared import PreparedCache
from retouch.session._programs import Programs
from retouch.session._regions import Regions
from retouch.session._states_read import StatesChecked
from retouch.states import StateStore


@dataclass(frozen=True)
class Runtime:
    """What an open session holds; closing a session is letting go of it."""

    bundle: Bundle
    engine: Engine
    store: StateStore
    programs: Programs
    regions: Regions
    bindings: Bindings
    prepared: PreparedCache
    expectations: Expectations
    states_read: StatesChecked
    kept: tuple[str, ...]
    weights: WeightStorage

    @classmethod
    def start(
        cls, bundle: Bundle, engine: Engine, store: StateStore, mode: GroupNormMode, weights: WeightStorage
    ) -> Runtime:
        """A runtime that has not opened any graph yet, and keeps what edits in that mode read."""
        return cls(
            bundle,
            engine,
            store,
            programs=Programs(engine, bundle),
            regions=Regions(engine, bundle.manifest),
            bindings=Bindings(store.holds),
            prepared=PreparedCache(),
            expectations=Expectations(bundle.manifest),
            states_read=StatesChecked(),
            kept=kept_ids(bundle.manifest, mode),
            weights=weights,
        )

    @property
    def manifest(self) -> Manifest:
        """The bundle's manifest."""
        return self.bundle.manifest
