"""Reads a model file and raises it to the opset that the exporter works on."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir
from onnx_ir.passes import common as passes

from retouch.errors import ModelError
from retouch.export.model_file import read_model

__all__ = ["MINIMUM_OPSET", "LoadedModel", "load_model"]

MINIMUM_OPSET = 18


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory, its weights still on disk where they are external.

    ``converted_from`` is the opset the file was written for if that was below the exporter's floor.
    """

    model: ir.Model
    name: str
    sha256: str
    converted_from: int | None


def load_model(path: str | os.PathLike[str]) -> LoadedModel:
    """The model in a file, at opset 18 or later.

    Raises:
        ModelError: the file is absent, is not an ONNX model, lacks its external data, is of a newer opset than the
            installed onnx knows, or cannot be converted.
    """
    path = Path(path)
    model = read_model(path)
    # Files of older exporters list every weight among the inputs, as a default.
    passes.RemoveInitializersFromInputsPass()(model)
    opset = model.opset_imports.get("", 0)
    newest = onnx.defs.onnx_opset_version()
    if opset > newest:
        raise ModelError(
            f"{path} uses opset {opset}; the installed onnx {onnx.__version__} knows operators up to opset {newest}. "
            f"Update onnx, or export the model again with opset_version={newest} or lower."
        )
    converted = None
    if opset < MINIMUM_OPSET:
        model, converted = _raised(model, path, opset), opset
    return LoadedModel(model, path.stem, _file_hash(path), converted)


def _raised(model: ir.Model, path: Path, opset: int) -> ir.Model:
    try:
        proto = onnx.version_converter.convert_version(ir.to_proto(model), MINIMUM_OPSET)
    except (RuntimeError, ValueError) as error:
        raise ModelError(
            f"{path} uses opset {opset}; Retouch needs {MINIMUM_OPSET} or later and the ONNX version converter "
            f"failed ({error}). Export the model again with opset_version={MINIMUM_OPSET}."
        ) from error
    return ir.from_proto(proto)


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
