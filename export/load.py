"""Reads a model file and raises it to the opset that the exporter works on."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from retouch.errors import ModelError

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
        ModelError: the file is absent, is not an ONNX model, lacks its external data, or cannot be converted.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"There is no model file at {path}. Give the path of an .onnx file.")
    try:
        model = ir.load(path)
    except (DecodeError, ValueError, UnicodeDecodeError) as error:
        raise ModelError(
            f"{path} is not a readable ONNX model ({error}). Give a file written by an ONNX exporter."
        ) from error
    if len(model.graph.outputs) == 0:
        raise ModelError(
            f"{path} is not a usable ONNX model: its graph has no outputs. Give a file written by an ONNX exporter."
        )
    _check_external_data(model, path)
    opset = model.opset_imports.get("", 0)
    converted = None
    if opset < MINIMUM_OPSET:
        model, converted = _raised(model, path, opset), opset
    return LoadedModel(model, path.stem, _file_hash(path), converted)


def _check_external_data(model: ir.Model, path: Path) -> None:
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if isinstance(tensor, ir.ExternalTensor) and not Path(tensor.path).is_file():
            raise ModelError(
                f"{path} keeps the weight {value.name!r} in {tensor.path}, which does not exist. "
                "Copy the model's external data file into the model's folder."
            )


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
