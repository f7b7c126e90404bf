"""Reads an ONNX file and refuses what is none, or is damaged, before anything else looks at it."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir
from onnx_ir.passes import common as passes

from retouch.bundle import relocate
from retouch.errors import ModelError

__all__ = ["read_model"]


def read_model(path: Path) -> ir.Model:
    """The model in a file, as it is; its external data stays on disk.

    Raises:
        ModelError: there is no file, it is no ONNX model, or names or external data are damaged.
    """
    if path.is_dir():
        raise ModelError(f"{path} is a directory. Give the path of the .onnx file in it.")
    if not path.is_file():
        raise ModelError(f"There is no model file at {path}. Give the path of an .onnx file.")
    proto = _parsed(path)
    if not proto.graph.output:
        raise ModelError(
            f"{path} is not a usable ONNX model: its graph has no outputs. Give a file written by an ONNX exporter."
        )
    _check_names(proto.graph, path)
    folder = relocate(proto, path.parent)
    try:
        model = ir.from_proto(proto)
    except Exception as error:
        raise _unreadable(path, _first_cause(error)) from error
    _sort(model, path)
    ir.external_data.set_base_dir(model.graph, folder)
    _check_external_data(model, path)
    return model


def _sort(model: ir.Model, path: Path) -> None:
    """Puts nodes behind those they read; converters to half precision leave them in any order."""
    try:
        passes.TopologicalSortPass()(model)
    except Exception as error:
        raise ModelError(
            f"{path} has nodes that read each other in a circle ({_first_cause(error)}). "
            "Write the file again with its exporter."
        ) from error


def _parsed(path: Path) -> onnx.ModelProto:
    try:
        return onnx.load(path, load_external_data=False)
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error}).") from error
    except Exception as error:  # every format has a parser with errors of its own
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: BaseException) -> ModelError:
    return ModelError(f"{path} is not a readable ONNX model ({error}). Give a file written by an ONNX exporter.")


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _check_names(graph: onnx.GraphProto, path: Path) -> None:
    """Every value is given, and once."""
    initializers = [tensor.name for tensor in graph.initializer]
    inputs = [value.name for value in graph.input]
    given: dict[str, str] = {}
    for names, what in ((inputs, "an input"), (initializers, "a weight")):
        for name in names:
            if given.get(name) == what:
                raise ModelError(f"{path} has {what} named {name!r} twice. Give every value a name of its own.")
            given[name] = what
    made = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        for name in filter(None, node.input):
            if name not in given and name not in made:
                raise ModelError(
                    f"{path}: {_described(node)} reads the value {name!r}, which is computed nowhere: the file lacks a "
                    "node or a weight. Write the file again with its exporter."
                )
        for name in filter(None, node.output):
            if name in given:
                raise ModelError(
                    f"{path} gives the name {name!r} to two values: {given[name]} and an output of {_described(node)}. "
                    "Give every value a name of its own."
                )
            given[name] = f"an output of {_described(node)}"


def _described(node: onnx.NodeProto) -> str:
    return f"the {node.op_type} node {node.name!r}"


def _check_external_data(model: ir.Model, path: Path) -> None:
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if not isinstance(tensor, ir.ExternalTensor):
            continue
        location, file = Path(tensor.location), Path(tensor.path)
        if location.is_absolute() or ".." in location.parts:
            raise ModelError(
                f"{path} keeps the weight {value.name!r} in {location}, outside of its own folder. "
                "Move the file with the external data into the model's folder and save the model again."
            )
        if not file.is_file():
            raise ModelError(
                f"{path} keeps the weight {value.name!r} in {file}, which does not exist. "
                "Copy the model's external data file into the model's folder."
            )
        end = (tensor.offset or 0) + (tensor.length or tensor.nbytes)
        if file.stat().st_size < end:
            raise ModelError(
                f"{path} keeps the weight {value.name!r} in {file}, which ends at byte {file.stat().st_size}, before "
                f"the weight does (at byte {end}). Copy the model's external data file again."
            )
