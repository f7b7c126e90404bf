"""Where a bundle and the model that it was exported from lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retouch.bundle import MANIFEST_FILE, Bundle
from retouch.errors import BundleError
from retouch.files import sha256_of

_GRAPH, _BUNDLE = "model.onnx", "bundle"
_SUFFIX, _GRAPH_SUFFIX = ".bundle", ".onnx"


@dataclass(frozen=True)
class Place:
    """A bundle, and the file of its model if that is at hand."""

    bundle: Bundle
    original: Path | None


def place_of(path: Path) -> Place:
    """What lies at a path: a bundle, or a model with its bundle beside it.

    Raises:
        BundleError: there is no bundle, it is damaged, or it was exported from another model.
    """
    if path.is_file():
        return beside(path)
    bundle = Bundle.open(path)
    return Place(bundle, original_of(bundle))


def original_of(bundle: Bundle) -> Path | None:
    """The model file that the bundle was exported from, if it lies where ``retouch export`` leaves it."""
    path = bundle.path.resolve()
    candidates = [path.parent / _GRAPH] if path.name == _BUNDLE else []
    if path.suffix == _SUFFIX:
        candidates.append(path.with_suffix(_GRAPH_SUFFIX))
    return next((file for file in candidates if file.is_file() and _is_source(bundle, file)), None)


def beside(model: Path) -> Place:
    """The bundle beside a model file: ``bundle``, or the file's own name with ``.bundle``.

    Raises:
        BundleError: there is none, or it was exported from another model.
    """
    found = bundle_beside(model)
    if found is None:
        raise BundleError(
            f"Expected a bundle beside {model}, as {_BUNDLE} or {model.stem}{_SUFFIX}, got none. "
            f"Make one with `retouch export {model.name} -o {model.stem}{_SUFFIX}`."
        )
    bundle = Bundle.open(found)
    require_source(bundle, model)
    return Place(bundle, model)


def bundle_beside(model: Path) -> Path | None:
    """The directory of the bundle beside a model file, if there is one."""
    candidates = (model.with_suffix(_SUFFIX), model.parent / _BUNDLE)
    return next((folder for folder in candidates if (folder / MANIFEST_FILE).is_file()), None)


def require_source(bundle: Bundle, model: Path) -> None:
    """Raise a BundleError if the bundle was not exported from that file."""
    if not _is_source(bundle, model):
        raise BundleError(
            f"Expected {model} to be the model that {bundle.path} was exported from, got another file: their SHA-256 "
            "differ. Export it again."
        )


def _is_source(bundle: Bundle, model: Path) -> bool:
    return sha256_of(model) == bundle.manifest.model.source_sha256
