"""Writing a reference model with torch's exporters."""

from __future__ import annotations

import inspect
import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import filelock
import numpy as np
import torch

from retouch.errors import ExportError
from retouch.validation.reference_models._cache import CacheEntry
from retouch.validation.reference_models._model import BuiltModel, ReferenceModel
from retouch.validation.reference_models._variant import BATCH_NAME, Variant

OUTPUT_NAME = "out"
# A protobuf file ends at 2 GB; the margin leaves room for the graph and for what a rewrite adds to it.
SINGLE_FILE_LIMIT = 1_500_000_000


def write_entry(model: ReferenceModel, entry: CacheEntry, fingerprint: str, variant: Variant) -> None:
    """Fills a cache entry, unless another process has filled it while this one waited for its turn."""
    with filelock.FileLock(entry.lock):
        if entry.holds(fingerprint):
            return
        began = time.perf_counter()
        built = model.build()
        with entry.draft() as draft:
            if variant.torchscript:
                _export_torchscript(built, draft, variant)
            else:
                _save(_program(built, variant), draft)
            feeds: dict[str, Any] = {name: tensor.numpy() for name, tensor in built.inputs.items()}
            np.savez(draft.feeds, **feeds)
            about = {**_about(model, variant), "seconds": round(time.perf_counter() - began, 1)}
            entry.replace_by(draft, fingerprint, about)


def _program(built: BuiltModel, variant: Variant) -> torch.onnx.ONNXProgram:
    inputs = tuple(built.inputs.values())
    shapes = None
    if variant.dynamic_batch:
        # torch.export would take an axis whose example size is one for a constant.
        inputs = tuple(torch.cat([tensor, tensor]) for tensor in inputs)
        shapes = _batch_shapes(built)
    with _quiet():
        program = torch.onnx.export(
            built.module,
            inputs,
            input_names=list(built.inputs),
            output_names=[OUTPUT_NAME],
            opset_version=variant.opset,
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
            # One name for the batch of all inputs is what is wanted.
            warnings.filterwarnings("ignore", message="# The axis name: batch will not be used")
            # The older exporter is deprecated, and says of every Python branch that it was traced.
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)  # type: ignore[attr-defined]
            yield
    finally:
        logger.setLevel(level)


def _batch_shapes(built: BuiltModel) -> tuple[Any, ...]:
    """The dynamic shapes of the parameters of the module's forward: axis 0 of every input."""
    axes = tuple({0: BATCH_NAME} for _ in built.inputs)
    parameters = inspect.signature(built.module.forward).parameters.values()
    variadic = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    return (axes,) if variadic else axes


def _export_torchscript(built: BuiltModel, entry: CacheEntry, variant: Variant) -> None:
    """Writes the graph with the exporter of torch 1, which many files at hand come from."""
    open_axes = {name: {0: BATCH_NAME} for name in (*built.inputs, OUTPUT_NAME)} if variant.dynamic_batch else None
    with _quiet(), torch.no_grad():
        torch.onnx.export(
            built.module,
            tuple(built.inputs.values()),
            str(entry.graph),
            input_names=list(built.inputs),
            output_names=[OUTPUT_NAME],
            opset_version=variant.opset,
            dynamic_axes=open_axes,
            dynamo=False,
            verbose=False,
        )


def _save(program: torch.onnx.ONNXProgram, entry: CacheEntry) -> None:
    weights = [value.const_value for value in program.model.graph.initializers.values()]
    size = sum(weight.nbytes for weight in weights if weight is not None)
    program.save(str(entry.graph), external_data=size > SINGLE_FILE_LIMIT)


def _about(model: ReferenceModel, variant: Variant) -> dict[str, Any]:
    """What a reader of the cache directory wants to know about an entry."""
    return {
        "model": model.name,
        "editable": model.editable,
        "axes": model.axes,
        "configuration": dict(model.configuration),
        "opset": variant.opset,
        "dynamic_batch": variant.dynamic_batch,
        "torchscript": variant.torchscript,
        "versions": {package: version(package) for package in ("torch", "diffusers", "onnxscript")},
    }
