"""The model that a bundle was exported from."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from retouch.bundle import Manifest
from retouch.errors import ModelError
from retouch.files import sha256_of


def check_original(path: Path, manifest: Manifest) -> None:
    """Checks that a file is the model that a bundle was exported from: a ratio to another model says nothing.

    Raises:
        ModelError: the file does not exist or is another one.
    """
    if not path.is_file():
        raise ModelError(
            f"Expected the original model, got {path}, which does not exist. Give the path of an .onnx file."
        )
    digest = sha256_of(path)
    if digest != manifest.model.source_sha256:
        raise ModelError(
            f"Expected the model {manifest.model.name!r} that the bundle was exported from (SHA-256 "
            f"{manifest.model.source_sha256[:16]}...), got {path} ({digest[:16]}...). "
            "Give that file, or export this one."
        )


def model_bytes(path: Path) -> int:
    """The size of a model on disk, with its external data.

    Raises:
        ModelError: it is not readable.
    """
    try:
        model = onnx.load(path, load_external_data=False)
    except (OSError, DecodeError) as error:
        raise ModelError(f"Expected {path} to be a readable ONNX model, got: {error}.") from error
    external = {
        entry.value
        for tensor in model.graph.initializer
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return sum(file.stat().st_size for file in (path, *(path.parent / name for name in external)))
