"""The bundles of the families, which are kept from one time to the next."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from retouch.bundle import Bundle
from retouch.errors import ModelError
from retouch.export import ExportOptions, export_onnx
from retouch.files import sha256_of
from retouch.models import TorchOptions, export_torch
from retouch.validation.benchmarks._subject import Say, find_subject, kept_bundle, key_of
from retouch.validation.benchmarks.families._family import Family, ReferenceSource, TorchSource

if TYPE_CHECKING:
    from torch.nn import Module

_SOURCES = ("retouch.export", "retouch.bundle", "retouch.region", "retouch.models")


@dataclass(frozen=True)
class FamilyBundle:
    """A family's bundle and what to measure it with.

    Attributes:
        bundle: the bundle.
        original: the graph it was exported from.
        feeds: what to feed; ``None`` means noise and middling conditions.
        key: what the bundle was made of: figures of another key are of another bundle.
        earlier: whether that is another state of the model or of the exporter than there is now.
    """

    bundle: Bundle
    original: Path
    feeds: Mapping[str, NDArray[Any]] | None = field(repr=False)
    key: str
    earlier: bool


def family_bundle(family: Family, build: Path, say: Say, *, earlier: bool = False) -> FamilyBundle:
    """The family's bundle: the one that is there, unless family or exporter changed since.

    Args:
        family: the family.
        build: where bundles are kept.
        say: called with a line before every step of an export.
        earlier: take the one that is there even so.
    """
    if isinstance(family.source, ReferenceSource):
        return _of_reference(family.name, family.source, build, say, earlier=earlier)
    return _of_torch(family.name, family.source, build, say, earlier=earlier)


def _stamp(build: Path, name: str, key: str) -> tuple[str, bool]:
    """What a bundle was made of, and whether that is something else than what it would be made of now."""
    found = stamp_of(build, name)
    return found, found != key


def stamp_of(build: Path, name: str) -> str:
    """What the family's bundle was made of; nothing if there is none."""
    stamp = build / f"{name}.key"
    return stamp.read_text(encoding="ascii") if stamp.is_file() else ""


def _of_reference(name: str, source: ReferenceSource, build: Path, say: Say, *, earlier: bool) -> FamilyBundle:
    subject = find_subject(source.name, build)
    key = key_of(sha256_of(subject.model), _SOURCES)

    def made(directory: Path) -> None:
        export_onnx(subject.model, directory, subject.options, tell=say)

    bundle = kept_bundle(build / name, key, made, say, earlier=earlier)
    return FamilyBundle(bundle, subject.model, subject.feeds, *_stamp(build, name, key))


def _of_torch(name: str, source: TorchSource, build: Path, say: Say, *, earlier: bool) -> FamilyBundle:
    graph, key = build / f"{name}.onnx", key_of(source.key, _SOURCES)
    options = TorchOptions(source.part, source.sizes, graph=graph, export=ExportOptions(text=source.text))

    def made(directory: Path) -> None:
        export_torch(_random_module(source), directory, options, tell=say)

    if not graph.is_file():
        (build / f"{name}.key").unlink(missing_ok=True)
    bundle = kept_bundle(build / name, key, made, say, earlier=earlier)
    return FamilyBundle(bundle, graph, None, *_stamp(build, name, key))


def _random_module(source: TorchSource) -> Module:
    """The module with weights that switch nothing off, the same on every call."""
    # Models are made from configurations: nothing is to be looked for on the network.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    library, _, name = source.model.partition(".")
    try:
        import torch

        kind = getattr(importlib.import_module(library), name)
    except ModuleNotFoundError as error:
        raise ModelError(
            f'Benchmarks of families need {error.name}, which is not installed: pip install "retouch[models]"'
        ) from error
    from retouch.validation.reference_models._weights import draw_weights

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        # transformers has classes for configurations, diffusers takes them as arguments.
        settings = source.configuration
        module: Module = kind(kind.config_class(**settings)) if library == "transformers" else kind(**settings)
        draw_weights(module)
    return module.eval()
