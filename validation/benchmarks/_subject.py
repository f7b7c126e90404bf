"""The models that are measured, and their bundles, which are kept from one time to the next."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from retouch.bundle import Bundle
from retouch.calibrate import calibrate
from retouch.errors import BundleError
from retouch.export import ExportOptions, export_onnx
from retouch.files import sha256_of
from retouch.validation.reference_models import export_reference, load_feeds, reference_model, terrain

TERRAIN = "terrain"
CACHE_VARIABLE = "RETOUCH_REFERENCE_MODELS"
_SOURCES = ("retouch.export", "retouch.bundle", "retouch.region", "retouch.calibrate")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """A model to measure.

    Attributes:
        name: its name.
        model: its .onnx file.
        options: how to export it.
        feeds: what to feed; ``None`` means noise and middling conditions.
        boxes: sizes of boxes to edit, beside areas.
    """

    name: str
    model: Path
    options: ExportOptions
    feeds: Mapping[str, NDArray[Any]] | None = field(repr=False)
    boxes: tuple[tuple[int, int], ...] = ()


def find_subject(name: str, build: Path) -> Subject:
    """The model of that name: ``terrain``, or a reference model.

    Raises:
        ModelError: there is none, or a package that it comes from is not installed.
    """
    if name == TERRAIN:
        return Subject(name, terrain(), ExportOptions(), None, boxes=((16, 16), (32, 32)))
    known = reference_model(name)
    model = export_reference(name, os.environ.get(CACHE_VARIABLE) or build / "models")
    feeds = load_feeds(model)
    return Subject(name, model, ExportOptions(editable=known.editable, axes=known.axes, example=feeds), feeds)


def calibrated_bundle(subject: Subject, build: Path, say: Say) -> Bundle:
    """The model's bundle with its break-even: the one that is there, unless model or exporter changed since."""

    def made(directory: Path) -> None:
        bundle = export_onnx(subject.model, directory, subject.options, tell=lambda step: say(f"export: {step}"))
        calibrate(bundle, threads=1, feeds=subject.feeds, progress=lambda line: say(f"calibrate: {line}"))

    return kept_bundle(build / subject.name, key_of(sha256_of(subject.model), _SOURCES), made, say)


def kept_bundle(directory: Path, key: str, make: Callable[[Path], None], say: Say, *, earlier: bool = False) -> Bundle:
    """The bundle in a directory if it was made under that key, else one made now.

    Args:
        directory: the directory; what it was made under stands in a file beside it.
        key: what a bundle that is made now is made under.
        make: makes it.
        say: called with a line before every step.
        earlier: take the bundle that is there whatever it was made under.
    """
    stamp = directory.with_name(f"{directory.name}.key")
    if stamp.is_file() and (earlier or stamp.read_text(encoding="ascii") == key):
        try:
            return Bundle.open(directory)
        except BundleError as error:
            say(f"export again: {error}")
    stamp.unlink(missing_ok=True)
    make(directory)
    stamp.write_text(key, encoding="ascii")
    return Bundle.open(directory)


def key_of(model: str, packages: Sequence[str]) -> str:
    """What a bundle depends on: the model, and the code that makes bundles."""
    digest = hashlib.sha256(model.encode())
    for package in packages:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for file in sorted(Path(folder).rglob("*.py")):
                digest.update(sha256_of(file).encode())
    return digest.hexdigest()
