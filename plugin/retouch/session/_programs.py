"""The programs of a bundle, opened when they are first needed."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from retouch.bundle import Bundle, EditGraphSpec
from retouch.engines import Engine, Program


class Programs:
    """The programs of a bundle.

    The engine computes a program's outputs all or not at all, so there is one program for what a run gives and one for
    what it also keeps; each costs memory only once it is used.
    """

    def __init__(self, engine: Engine, bundle: Bundle) -> None:
        self._engine = engine
        self._bundle = bundle
        self._own = tuple(output.tensor.name for output in bundle.manifest.outputs)
        self._lock = threading.Lock()
        self._open: dict[tuple[str, bool], Program] = {}

    def base(self, *, record: bool) -> Program:
        """The full model; with ``record`` it also gives every cacheable."""
        return self._get(self._bundle.manifest.base_file, record)

    def edit(self, spec: EditGraphSpec, *, record: bool) -> Program:
        """An edit graph; with ``record`` it also gives the updates of the cacheables."""
        return self._get(spec.file, record and bool(spec.updates))

    def prep(self, file: str) -> Program:
        """The graph that prepares inputs of an edit graph."""
        return self._get(file, everything=True)

    def _get(self, file: str, everything: bool) -> Program:
        outputs: Sequence[str] | None = None if everything else self._own
        with self._lock:
            if (file, everything) not in self._open:
                self._open[file, everything] = self._engine.open(self._bundle.path / file, outputs)
            return self._open[file, everything]
