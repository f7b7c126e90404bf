"""What a fresh process measures of itself: ``python -m retouch.bench._probe REQUEST`` prints one JSON object."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import numpy as np

from retouch.bench._resident import resident
from retouch.bundle import Bundle
from retouch.calibrate import block_region, open_full_model, sample_feeds
from retouch.engines.ort import OrtEngine
from retouch.session import EditSession

_AREA = 0.05


class Request(TypedDict):
    """What to measure: ``kind`` is ``edit`` or ``stock``; without a model, the bundle's full model is the stock one."""

    kind: str
    bundle: str
    model: str | None
    threads: int


class Probe(TypedDict):
    """What one process measured, or the median of several.

    Attributes:
        open_ms: until all graphs are loaded, checks of the bundle's hashes included, imports not.
        first_ms: until the first result: of a full run; for an edit, of a base run and an edit.
        imports_bytes: resident memory after the imports.
        peak_bytes: largest resident memory.
        rest_bytes: resident memory at the end.
        mapped_bytes: the part of it that is pages of files: weights that graphs share, and libraries.
        states_bytes: the states that are kept.
    """

    open_ms: float
    first_ms: float
    imports_bytes: int
    peak_bytes: int
    rest_bytes: int
    mapped_bytes: int
    states_bytes: int


class _Stopwatch:
    """Time since the imports, and the memory that they took."""

    def __init__(self) -> None:
        # The first value imports the engine, which takes as long for either kind.
        OrtEngine().value(np.zeros(1, np.float32))
        self._imports = resident().now
        self._start = time.perf_counter()

    def read(self) -> float:
        """Milliseconds so far."""
        return 1e3 * (time.perf_counter() - self._start)

    def probe(self, open_ms: float, states_bytes: int) -> Probe:
        """What was measured; the first result is there."""
        first_ms, memory = self.read(), resident()
        return Probe(
            open_ms=open_ms,
            first_ms=first_ms,
            imports_bytes=self._imports,
            peak_bytes=memory.peak,
            rest_bytes=memory.now,
            mapped_bytes=memory.mapped,
            states_bytes=states_bytes,
        )


def _edit(request: Request) -> Probe:
    manifest = Bundle.open(request["bundle"], check="none").manifest
    feeds, changed = sample_feeds(manifest), sample_feeds(manifest, seed=1)
    region = block_region(manifest.grid(manifest.editable.grid).dims, _AREA)
    watch = _Stopwatch()
    with EditSession(request["bundle"], threads=request["threads"]).preload() as session:
        opened = watch.read()
        run = session.base(feeds)
        change = {manifest.editable.input: changed[manifest.editable.input]}
        session.edit(run, change, region=region, fallback=False)
        return watch.probe(opened, run.bytes)


def _stock(request: Request) -> Probe:
    bundle = Bundle.open(request["bundle"], check="none")
    own = [output.tensor.name for output in bundle.manifest.outputs]
    feeds = sample_feeds(bundle.manifest)
    engine = OrtEngine(threads=request["threads"])
    watch = _Stopwatch()
    if request["model"] is None:
        run = open_full_model(engine, bundle.path / bundle.manifest.base_file, own, feeds)
    else:
        run = open_full_model(engine, Path(request["model"]), None, feeds)
    opened = watch.read()
    run()
    return watch.probe(opened, 0)


_KINDS: dict[str, Callable[[Request], Probe]] = {"edit": _edit, "stock": _stock}

if __name__ == "__main__":
    _request: Request = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(_KINDS[_request["kind"]](_request)))
