"""Writing a reference model with torch's dynamo exporter."""

from __future__ import annotations

import inspect
import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import filelock
import numpy as np
import torch

from retouch.errors import ExportError
from retouch.validation.reference_models._cache import CacheEntry
from retouch.validation.reference_models._model import BuiltModel, ReferenceModel

OUTPUT_NAME = "out"
# A protobuf file ends at 2 GB; the margin leaves room for the graph and for what a rewrite adds to it.
SINGLE_FILE_LIMIT = 1_500_000_000


@dataclass(frozen=True)
class ExportOptions:
    """How a reference model is exported."""

    opset: int
    dynamic_batch: bool


def write_entry(model: ReferenceModel, entry: CacheEntry, fingerprint: str, options: ExportOptions) -> None:
    """Fills a cache entry, unless another process has filled it while this one waited for its turn."""
    with filelock.FileLock(entry.lock):
        if entry.holds(fingerprint):
            return
        began = time.perf_counter()
        built = model.build()
        program = _program(built, options)
        with entry.draft() as draft:
            _save(program, built, draft)
            about = {**_about(model, options), "seconds": round(time.perf_counter() - began, 1)}
            entry.replace_by(draft, fingerprint, about)


def _program(built: BuiltModel, options: ExportOptions) -> torch.onnx.ONNXProgram:
    inputs = tuple(built.inputs.values())
    shapes = None
    if options.dynamic_batch:
        # torch.export would take an axis whose example size is one for a constant.
        inputs = tuple(torch.cat([tensor, tensor]) for tensor in inputs)
        shapes = _batch_shapes(built)
    with _quiet():
        program = torch.onnx.export(
            built.module,
            inputs,
            input_names=list(built.inputs),
            output_names=[OUTPUT_NAME],
            opset_version=options.opset,
            dynamic_shapes=shapes,
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise ExportError(f"torch {torch.__version__} exported nothing; expected a program from its dynamo exporter")
    return program


@contextmanager
def _quiet() -> Iterator[None]:
    """Holds back what the exporter says about its own deprecated calls and about packages it could also serve."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logger.setLevel(level)


def _batch_shapes(built: BuiltModel) -> tuple[Any, ...]:
    """The dynamic shapes of the parameters of the module's forward: axis 0 of every input."""
    axes = tuple({0: torch.export.Dim.DYNAMIC} for _ in built.inputs)
    parameters = inspect.signature(built.module.forward).parameters.values()
    variadic = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    return (axes,) if variadic else axes


def _save(program: torch.onnx.ONNXProgram, built: BuiltModel, entry: CacheEntry) -> None:
    weights = [value.const_value for value in program.model.graph.initializers.values()]
    size = sum(weight.nbytes for weight in weights if weight is not None)
    program.save(str(entry.graph), external_data=size > SINGLE_FILE_LIMIT)
    feeds: dict[str, Any] = {name: tensor.numpy() for name, tensor in built.inputs.items()}
    np.savez(entry.feeds, **feeds)


def _about(model: ReferenceModel, options: ExportOptions) -> dict[str, Any]:
    """What a reader of the cache directory wants to know about an entry."""
    return {
        "model": model.name,
        "editable": model.editable,
        "axes": model.axes,
        "configuration": dict(model.configuration),
        "opset": options.opset,
        "dynamic_batch": options.dynamic_batch,
        "versions": {package: version(package) for package in ("torch", "diffusers", "onnxscript")},
    }
