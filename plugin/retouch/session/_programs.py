"""The programs of a bundle, opened when they are first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from retouch.bundle import Bundle, EditGraphSpec, PreparedGroup, prepared_groups
from retouch.engines import Engine, Program
from retouch.session._lru import Lru

_Key = tuple[str, tuple[str, ...]]

_PREP_GRAPHS = 8
"""More than a bundle has: one for every edit graph."""


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
        self._open: dict[_Key, Future[Program]] = {}
        self._groups: Lru[str, tuple[PreparedGroup, ...]] = Lru(_PREP_GRAPHS)

    def base(self, cacheables: Sequence[str] = ()) -> Program:
        """The full model, which also gives the cacheables with those ids."""
        outputs = (*self._own, *(f"cacheable.{item}" for item in cacheables))
        return self._get(self._bundle.manifest.base_file, outputs)

    def edit(self, spec: EditGraphSpec, *, record: bool) -> Program:
        """An edit graph, a stacked one too; with ``record`` it also gives the updates of the cacheables."""
        return self._get(spec.file, (*self._own, *(f"update.{item}" for item in spec.updates if record)))

    def prep(self, file: str, outputs: tuple[str, ...]) -> Program:
        """Some outputs of the graph that prepares inputs of an edit graph."""
        return self._get(file, outputs)

    def prepared_groups(self, file: str) -> tuple[PreparedGroup, ...]:
        """The outputs of such a graph, grouped by what they depend on."""
        return self._groups.get(file, lambda: prepared_groups(self._bundle.path / file))

    def load(self, programs: Sequence[Callable[[], Program]]) -> None:
        """Open programs side by side, which engines do outside of Python's lock.

        Args:
            programs: calls of this object's methods.
        """
        with ThreadPoolExecutor(max_workers=len(programs)) as pool:
            for opened in [pool.submit(program) for program in programs]:
                opened.result()

    def _get(self, file: str, outputs: tuple[str, ...]) -> Program:
        key = (file, outputs)
        with self._lock:
            known = self._open.get(key)
            future = self._open.setdefault(key, Future())
        if known is None:
            self._fill(key, future)
        return future.result()

    def _fill(self, key: _Key, future: Future[Program]) -> None:
        file, outputs = key
        try:
            future.set_result(self._engine.open(self._bundle.path / file, outputs))
        except BaseException as error:
            # Those who wait get the error; the next one who asks tries again.
            with self._lock:
                del self._open[key]
            future.set_exception(error)
            raise
