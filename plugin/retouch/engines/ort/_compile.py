"""Models optimised, or compiled, for execution providers ahead of time, their weights left where they are."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from retouch.engines.ort._engine import OrtEngine, Provider
from retouch.engines.ort._runtime import load_onnxruntime
from retouch.errors import BuildError, EngineMissingError

__all__ = ["COMPILING", "compiled"]

COMPILING = ("TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")
"""Providers that make engines of their own of a model's parts, which an EPContext model holds."""


def compiled(
    providers: tuple[Provider, ...], model: onnx.ModelProto, folder: Path, name: str, library: Path | None = None
) -> onnx.ModelProto:
    """What ONNX Runtime makes of a model for those providers, before it runs it.

    For providers that compile it is an EPContext model, for others the optimised graph, as far as that does not depend
    on the machine. A weight that stays what it is remains a reference to the file that the model names.

    Args:
        providers: the execution providers, by preference.
        model: the model, whose weights are in files.
        folder: where these are.
        name: what to call the model in messages.
        library: custom operators that it has.

    Raises:
        EngineMissingError: onnxruntime cannot compile, or lacks a provider.
        BuildError: a provider does not compile it, or onnxruntime refuses it.
    """
    runtime = load_onnxruntime()
    if not hasattr(runtime, "ModelCompiler"):
        raise EngineMissingError(
            f"Expected an onnxruntime that compiles models ahead of time, got {runtime.__version__}. Update it."
        )
    engine = OrtEngine(providers)
    options = engine.session_options(folder, library)
    names = [item if isinstance(item, str) else item[0] for item in providers]
    if not engine.kernels:
        for item, provider in zip(providers, names, strict=True):
            options.add_provider(provider, {} if isinstance(item, str) else item[1])
    compiles = any(provider in COMPILING for provider in names)
    levels, flags = runtime.GraphOptimizationLevel, runtime.OrtCompileApiFlags
    try:
        contents = runtime.ModelCompiler(
            options,
            model.SerializeToString(),
            True,
            flags=flags.ERROR_IF_NO_NODES_COMPILED if compiles else flags.NONE,
            graph_optimization_level=levels.ORT_DISABLE_ALL if compiles else levels.ORT_ENABLE_EXTENDED,
            get_initializer_location_func=_kept_places(runtime, model, folder),
        ).compile_to_bytes()
    except Exception as error:  # onnxruntime's errors have no other class in common
        raise BuildError(
            f"ONNX Runtime {runtime.__version__} ({', '.join(names)}) does not compile {name}: {str(error).strip()}. "
            "Update it, or run the bundle without a build."
        ) from error
    return onnx.load_from_string(contents)


def _kept_places(runtime: Any, model: onnx.ModelProto, folder: Path) -> Any:  # noqa: ANN401  (an optional library)
    """Says of every weight of the result where it is: in the file it came from, if it is what that holds."""
    places = {tensor.name: _place(tensor) for tensor in model.graph.initializer if tensor.external_data}

    def where(name: str, value: Any, _info: Any) -> Any:  # noqa: ANN401
        if name not in places:
            return None
        file, offset, size = places[name]
        if size != value.tensor_size_in_bytes():
            return None
        with (folder / file).open("rb") as stream:
            stream.seek(offset)
            same = stream.read(size) == ctypes.string_at(value.data_ptr(), size)
        return runtime.OrtExternalInitializerInfo(file, offset, size) if same else None

    return where


def _place(tensor: onnx.TensorProto) -> tuple[str, int, int]:
    entries: Mapping[str, str] = {entry.key: entry.value for entry in tensor.external_data}
    return entries["location"], int(entries.get("offset", "0")), int(entries["length"])
