"""From a torch module, or a directory that holds one, to a bundle."""

from __future__ import annotations

import dataclasses
import gc
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from retouch.bundle import Bundle
from retouch.errors import ExportError
from retouch.export import ExportOptions, export_onnx
from retouch.models._adapter import Adapter
from retouch.models._check import check_outputs
from retouch.models._input import Role
from retouch.models._load import load_module, model_class
from retouch.models._options import TorchOptions
from retouch.models._registry import adapter_for, class_name_of
from retouch.models._torch_onnx import TorchGraph, Traced, trace

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["bundle_of", "export_torch", "traced"]

Tell = Callable[[str], None]


def export_torch(
    model: Module | str | os.PathLike[str],
    output: str | os.PathLike[str],
    options: TorchOptions | None = None,
    *,
    tell: Tell | None = None,
) -> Bundle:
    """The bundle of a torch model, written to a directory only if it passes verification.

    Args:
        model: a module of a class that has an adapter, or a directory that ``save_pretrained`` wrote.
        output: directory to write; an existing bundle there is replaced on success.
        options: see ``TorchOptions``.
        tell: called with one line before every step.

    Raises:
        ModelError: there is no adapter for the model, or it cannot be loaded or traced.
        ExportError: it has no editable input, or it cannot be exported as asked for.
        VerificationError: the ONNX graph differs from the module, or a produced graph from its reference.
    """
    options, say = options or TorchOptions(), tell or (lambda _: None)
    with tempfile.TemporaryDirectory() as folder:
        path, graph = _saved(model, Path(folder), options, say)
        # What torch traces refers to itself in circles, and holds the weights meanwhile.
        gc.collect()
        say("compare with torch")
        check_outputs(path, graph)
        return bundle_of(path, graph, Path(output), options.export, say)


def _saved(
    model: Module | str | os.PathLike[str], folder: Path, options: TorchOptions, say: Tell
) -> tuple[Path, Traced]:
    """Writes the graph. At the end of this call module and weights are let go, unless they are the caller's."""
    module, adapter = _resolved(model, options, say)
    path = options.graph or folder / f"{adapter.part or adapter.family}.onnx"
    return path, traced(module, adapter, options, say).save(path)


def traced(module: Module, adapter: Adapter, options: TorchOptions, say: Tell) -> TorchGraph:
    """The ONNX graph of a module."""
    say(f"trace {type(module).__name__}")
    return trace(module, adapter, options.sizes, options.opset)


def bundle_of(path: Path, graph: Traced, output: Path, options: ExportOptions, say: Tell) -> Bundle:
    """The bundle of a traced graph that was written to a file."""
    editable = next((item for item in graph.inputs if item.role is Role.EDITABLE), None)
    if editable is None:
        raise ExportError("The model has no editable input: nothing of it would be cheaper in an edit.")
    name = options.editable or editable.name
    axes = options.axes or (editable.axes if name == editable.name else None)
    conditions = {key: feed for key, feed in graph.feeds.items() if key != name}
    feeds = {**conditions, **(options.example or {})}
    return export_onnx(path, output, dataclasses.replace(options, editable=name, axes=axes, example=feeds), tell=say)


def _resolved(model: Module | str | os.PathLike[str], options: TorchOptions, say: Tell) -> tuple[Module, Adapter]:
    if not isinstance(model, str | os.PathLike):
        return model, options.adapter or adapter_for(class_name_of(model), options.part)
    directory = Path(model)
    # Looked up before the weights are read: that may take minutes.
    adapter = options.adapter or adapter_for(model_class(directory), options.part)
    say(f"read {directory.name}")
    return load_module(directory), adapter
