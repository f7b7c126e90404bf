"""What ``retouch export`` does with a directory: a torch model, or a pipeline of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from retouch.bundle import Bundle
from retouch.errors import ExportError
from retouch.export import ExportOptions, export_onnx
from retouch.models import Sizes, TorchOptions, export_pipeline, export_torch, is_pipeline

_DEFAULT_OPSET = 18

Tell = Callable[[str], None]


def export_any(
    model: Path,
    output: Path,
    options: ExportOptions,
    *,
    part: str | None = None,
    opset: int | None = None,
    precisions: Mapping[str, str] | None = None,
    tell: Tell,
) -> Mapping[str, Bundle]:
    """The bundles of an ONNX file, a torch model or a pipeline, by the component's folder or the output's name.

    Args:
        model: the .onnx file, or a directory that ``save_pretrained`` wrote.
        output: where the bundle, or the exported pipeline, goes.
        options: how to export; ``fix`` holds the sizes of open dims, or those that a torch model is traced with.
        part: part of a torch model.
        opset: opset of the graph that a torch model becomes.
        precisions: precisions of single components of a pipeline, by folder.
        tell: called with one line before every step.
    """
    if precisions and not is_pipeline(model):
        named = ", ".join(f"{name}={precision}" for name, precision in precisions.items())
        raise ExportError(f"Only pipelines have components to name, got --precision {named}. Give the precision alone.")
    if not model.is_dir():
        if part is not None or opset is not None:
            raise ExportError("--part and --opset are for torch models; an .onnx file is taken as it is.")
        return {output.name: export_onnx(model, output, options, tell=tell)}
    plain = dataclasses.replace(options, fix=None)
    torch = TorchOptions(part, _sizes(options.fix or {}), opset or _DEFAULT_OPSET, export=plain)
    if is_pipeline(model):
        if part is not None or options.editable is not None or options.example is not None:
            raise ExportError("--part, --input and --example are for single models; a pipeline's adapters know theirs.")
        return export_pipeline(model, output, dataclasses.replace(torch, precisions=precisions or {}), tell=tell)
    return {output.name: export_torch(model, output, torch, tell=tell)}


def _sizes(fix: Mapping[str, int]) -> Sizes:
    known = [field.name for field in dataclasses.fields(Sizes)]
    unknown = sorted(set(fix) - set(known))
    if unknown:
        raise ExportError(f"Expected --fix of a torch model to name {', '.join(known)}, got {', '.join(unknown)}.")
    return Sizes(**fix)
