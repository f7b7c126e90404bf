"""Memory, start-up time and size of a bundle, against the model it was exported from."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import numpy as np

from retouch.bench._original import model_bytes
from retouch.bench._probe import Probe, Request
from retouch.bundle import Bundle
from retouch.engines.ort import OrtEngine
from retouch.errors import RetouchError


class Footprint(TypedDict):
    """What it takes to be ready for edits, and what it takes to be ready for full runs.

    Attributes:
        edit: a session that has made a base run and an edit, and keeps the base run's states.
        stock: a stock session of the original model that has made a run.
        stock_model: ``original``, or ``bundle`` if only the bundle's full model was there to compare with.
        states_bytes: the states of one base run.
        bundle_bytes: the bundle on disk.
        weights_bytes: the bundle's weights file, which all its graphs share.
        original_bytes: the original model on disk.
        threads: threads per run.
        processes: fresh processes of each kind; every figure is their median.
    """

    edit: Probe
    stock: Probe
    stock_model: str
    states_bytes: int
    bundle_bytes: int
    weights_bytes: int
    original_bytes: int | None
    threads: int
    processes: int


def measure_footprint(
    bundle: Bundle | str | Path,
    *,
    original: str | Path | None = None,
    threads: int = 1,
    processes: int = 5,
    progress: Callable[[str], None] | None = None,
) -> Footprint:
    """The footprint of a bundle, measured in fresh processes, which take turns.

    Args:
        bundle: the bundle, or its directory.
        original: the model that was exported.
        threads: threads per run.
        processes: processes of each kind.
        progress: called with a line before every process.

    Raises:
        ModelError: the original is not readable.
        EngineMissingError: onnxruntime is not installed.
        RetouchError: a process failed.
    """
    OrtEngine().value(np.zeros(1, np.float32))  # or every process would fail for want of the engine
    opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
    model = None if original is None else str(Path(original).resolve())
    request = Request(kind="", bundle=str(opened.path.resolve()), model=model, threads=threads)
    probes = _take_turns(request, processes, progress or (lambda _: None))
    return Footprint(
        edit=_median(probes["edit"]),
        stock=_median(probes["stock"]),
        stock_model="bundle" if original is None else "original",
        states_bytes=probes["edit"][0]["states_bytes"],
        bundle_bytes=sum(path.stat().st_size for path in opened.path.iterdir()),
        weights_bytes=_file_bytes(opened, opened.manifest.weights_file),
        original_bytes=None if original is None else model_bytes(Path(original)),
        threads=threads,
        processes=processes,
    )


def _take_turns(request: Request, processes: int, say: Callable[[str], None]) -> dict[str, list[Probe]]:
    probes: dict[str, list[Probe]] = {"edit": [], "stock": []}
    for number in range(processes):
        for kind, made in probes.items():
            say(f"process {number + 1} of {processes}: {kind}")
            made.append(_probe({**request, "kind": kind}))
    return probes


def _probe(request: Request) -> Probe:
    command = [sys.executable, "-m", "retouch.bench._probe", json.dumps(request)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own module)
    if done.returncode != 0:
        raise RetouchError(
            f"Expected the measuring process to end, got exit code {done.returncode}: {done.stderr.strip()[-500:]}. "
            "If it was killed, there is too little memory."
        )
    probe: Probe = json.loads(done.stdout)
    return probe


def _file_bytes(bundle: Bundle, name: str) -> int:
    return bundle.manifest.files[name].bytes if name in bundle.manifest.files else 0


def _median(probes: list[Probe]) -> Probe:
    def of(values: list[float]) -> float:
        return float(np.median(values))

    return Probe(
        open_ms=of([probe["open_ms"] for probe in probes]),
        first_ms=of([probe["first_ms"] for probe in probes]),
        imports_bytes=int(of([probe["imports_bytes"] for probe in probes])),
        peak_bytes=int(of([probe["peak_bytes"] for probe in probes])),
        rest_bytes=int(of([probe["rest_bytes"] for probe in probes])),
        mapped_bytes=int(of([probe["mapped_bytes"] for probe in probes])),
        states_bytes=probes[0]["states_bytes"],
    )
