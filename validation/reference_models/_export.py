"""Exporting reference models into a cache directory."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from retouch.errors import ExportError
from retouch.validation.reference_models._cache import CacheEntry
from retouch.validation.reference_models._catalogue import reference_model
from retouch.validation.reference_models._model import ReferenceModel, explained_if_missing
from retouch.validation.reference_models._variant import BATCH_NAME, LOWEST_OPSET, Variant

# Part of every fingerprint; to be raised when builders, weights or export change what is written.
RECIPE = 1


def export_reference(
    name: str, directory: str | Path, *, opset: int = 18, dynamic_batch: bool = False, torchscript: bool = False
) -> Path:
    """The path of the model's ONNX file in the directory, exported now unless it is already there.

    Beside ``NAME.onnx`` lie ``NAME.feeds.npz`` (example feeds, batch of one) and ``NAME.json`` (what was exported,
    with which versions, how long it took). Other opsets and the dynamic batch have their own stems, for example
    ``NAME.opset23.dynamic_batch``, so that one directory serves every test and benchmark at the same time. A model
    found in the directory is returned without importing torch.

    Args:
        name: a name in ``REFERENCE_MODELS``.
        directory: where the files are kept; created if it does not exist.
        opset: opset of the exported graph.
        dynamic_batch: leave the batch axis of every input open, under the name ``batch``, instead of fixing it to one.
        torchscript: export with torch's older exporter instead of its dynamo exporter.

    Raises:
        ModelError: the name is unknown, or torch or diffusers is not installed.
        ExportError: the opset is below 18.
    """
    model = reference_model(name)
    if opset < LOWEST_OPSET:
        raise ExportError(f"expected an opset of at least {LOWEST_OPSET}, got {opset}; leave it at the default")
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    variant = Variant(opset, dynamic_batch, torchscript)
    entry = CacheEntry(directory, f"{name}{variant.suffix}")
    fingerprint = _fingerprint(model, variant)
    if not entry.holds(fingerprint):
        with explained_if_missing(name):
            from retouch.validation.reference_models import _torch_export

            _torch_export.write_entry(model, entry, fingerprint, variant)
    return entry.graph


def load_feeds(graph: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The example feeds of an exported reference model, by input name."""
    graph = Path(graph)
    with np.load(CacheEntry(graph.parent, graph.stem).feeds) as stored:
        return dict(stored)


def _fingerprint(model: ReferenceModel, variant: Variant) -> str:
    """Hash of all that decides what an export contains, library versions aside."""
    parts = {
        "recipe": RECIPE,
        "name": model.name,
        "builder": model.builder.__name__,
        "configuration": dict(model.configuration),
        "opset": variant.opset,
        "dynamic_batch": BATCH_NAME if variant.dynamic_batch else False,
    }
    if variant.torchscript:
        parts["torchscript"] = True
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
