"""The plain graph beside a bundle, reading its weights from the bundle's file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import onnx_ir as ir

from retouch.bundle import Bundle, read_shared, update_manifest
from retouch.export.model_file import read_model
from retouch.export.shared_weights import SharedWeights
from retouch.export.weights import WeightsFile
from retouch.files import sha256_of

__all__ = ["share_with_bundle"]


def share_with_bundle(plain: Path, path: Path, bundle: Bundle) -> str:
    """Writes a graph so that its weights are on disk once; returns what became of them, in words.

    Weights that the export changed, such as those it multiplied into one another, stay the graph's own. The bundle
    then names the new file as the model it came from.

    Args:
        plain: the graph's file, which has all its weights.
        path: the file to write, in a folder above the bundle.
        bundle: the bundle that was made of it.
    """
    if read_shared(bundle.path) is not None:
        for file in plain.parent.iterdir():
            file.rename(path.parent / file.name)
        return "holds its weights itself: the bundle's are in another pipeline, where ONNX Runtime does not look"
    model = read_model(plain)
    own = WeightsFile(path.parent / f"{path.name}_data", SharedWeights.of(bundle, path.parent))
    own.externalise(model)
    ir.save(model, path)
    size = own.path.stat().st_size
    if not size:
        own.path.unlink()
    spec = dataclasses.replace(bundle.manifest.model, source_sha256=sha256_of(path))
    update_manifest(bundle.path, bundle.manifest.replace(model=spec))
    return f"reads {own.shared_bytes / 2**20:.1f} MiB from the bundle's weights and {size / 2**20:.1f} MiB from its own"
