"""Puts engines into bundles so that a failure leaves the bundle as it was."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import tempfile
from pathlib import Path

from retouch.bundle._bundle import Bundle
from retouch.bundle._engine_files import engine_files, engine_name, half_written
from retouch.bundle._engines import ENGINES_FOLDER, EngineSpec
from retouch.bundle._writer import update_manifest
from retouch.errors import BundleError
from retouch.files import FileSpec, exclusive, replace_bytes


def check_writable(bundle: Path, target: str) -> None:
    """Checks that engines of a target can be written, before time goes into building one.

    Raises:
        BundleError: the bundle cannot be written to.
    """
    folder = bundle / ENGINES_FOLDER / target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BundleError(
            f"Engines cannot be written to {folder}: {error}. Make the bundle writable, or copy it elsewhere."
        ) from error


def store_engine(bundle: Path, contents: memoryview, spec: EngineSpec) -> str:
    """Writes an engine into a bundle and lists it in the manifest; returns its path in the bundle.

    It takes the place of the engine of the same graph, target, precision, devices and outputs. The file is complete
    before the manifest names it, and the old one goes only after that: whatever happens in between, the manifest names
    what is there.

    Args:
        bundle: the bundle's directory.
        contents: the engine.
        spec: what it is; size and hash are filled in.

    Raises:
        BundleError: the bundle cannot be written to.
    """
    digest = hashlib.sha256(contents).hexdigest()
    # Equal contents may be engines for different devices: what one is made from and by tells them apart.
    own = hashlib.sha256(f"{digest}{spec.source}".encode()).hexdigest()
    name = engine_name(spec.target, spec.graph, spec.precision, own)
    spec = dataclasses.replace(spec, file=FileSpec(contents.nbytes, digest))
    try:
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        # Another build's manifest would not name this engine, and its sweep take the file for left behind.
        with exclusive(bundle / ENGINES_FOLDER):
            replace_bytes(bundle / name, contents)
            _list(bundle, name, spec)
    except OSError as error:
        raise BundleError(
            f"The engine {bundle / name} cannot be written: {error}. Make room, or the bundle writable."
        ) from error
    return name


def _list(bundle: Path, name: str, spec: EngineSpec) -> None:
    # Read again: something else may have been measured or built meanwhile.
    current = Bundle.open(bundle, check="none").manifest
    others = {key: other for key, other in current.engines.items() if not _same_place(other, spec)}
    update_manifest(bundle, current.replace(engines={**others, name: spec}))
    _sweep(bundle, {*others, name})


def _same_place(one: EngineSpec, other: EngineSpec) -> bool:
    """Whether one is there for what the other is; groups of a graph's prepared inputs are engines of their own."""
    kind, of_other = ((it.graph, it.target, it.precision, it.devices) for it in (one, other))
    return kind == of_other and not {*one.outputs}.isdisjoint(other.outputs)


def _sweep(bundle: Path, listed: set[str]) -> None:
    """Removes engines that the manifest does not name, and half-written ones."""
    kept = {bundle / name for name in listed}
    for path in (*engine_files(bundle), *half_written(bundle)):
        if path not in kept:
            with contextlib.suppress(OSError):  # it costs room, nothing else
                path.unlink()
