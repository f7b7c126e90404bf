"""The programs of a bundle, opened when they are first needed."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from retouch.bundle import Bundle, EditGraphSpec
from retouch.engines import Engine, Program


class Programs:
    """The programs of a bundle.

    The engine computes a program's outputs all or not at all, so there is one program for what a run gives and one for
    what it also keeps; each takes time to open and memory only once it is used.
    """

    def __init__(self, engine: Engine, bundle: Bundle) -> None:
        self._engine = engine
        self._bundle = bundle
        self._own = tuple(output.tensor.name for output in bundle.manifest.outputs)
        self._lock = threading.Lock()
        self._open: dict[tuple[str, tuple[str, ...] | None], Program] = {}

    def base(self, cacheables: Sequence[str] = ()) -> Program:
        """The full model, which also gives the cacheables with those ids."""
        outputs = (*self._own, *(f"cacheable.{item}" for item in cacheables))
        return self._get(self._bundle.manifest.base_file, outputs)

    def edit(self, spec: EditGraphSpec, *, record: bool) -> Program:
        """An edit graph; with ``record`` it also gives the updates of the cacheables."""
        return self._get(spec.file, (*self._own, *(f"update.{item}" for item in spec.updates if record)))

    def prep(self, file: str) -> Program:
        """The graph that prepares inputs of an edit graph."""
        return self._get(file, None)

    def _get(self, file: str, outputs: tuple[str, ...] | None) -> Program:
        with self._lock:
            if (file, outputs) not in self._open:
                self._open[file, outputs] = self._engine.open(self._bundle.path / file, outputs)
            return self._open[file, outputs]
