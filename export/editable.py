"""Finds the input that carries the editable positions, and their axes."""

from __future__ import annotations

import onnx_ir as ir

from retouch.errors import ExportError
from retouch.export.model_shapes import dtype_of, shape_of

__all__ = ["find_editable"]

_NAMES = ("sample", "noisy", "latent", "latents", "x", "hidden_states", "input_ids", "ids", "noisy_latents")


def find_editable(graph: ir.Graph, name: str | None, axes: tuple[int, ...] | None) -> tuple[str, tuple[int, ...]]:
    """Name and axes of the editable input: as given, else the one input that looks like it.

    Raises:
        ExportError: the input is absent or ambiguous, holds no numbers, or an axis is out of range.
    """
    described = ", ".join(f"{value.name}{list(shape_of(value))}" for value in graph.inputs) or "none"
    if name is None:
        candidates = [value for value in graph.inputs if len(shape_of(value)) >= 3] or [
            value for value in graph.inputs if len(shape_of(value)) == 2
        ]
        named = [value for value in candidates if value.name in _NAMES]
        chosen = named if len(named) == 1 else candidates
        if len(chosen) != 1:
            raise ExportError(
                f"Which input carries the editable positions is not clear; the model's inputs are {described}. "
                "Name it with --input NAME."
            )
        value = chosen[0]
    else:
        found = [value for value in graph.inputs if value.name == name]
        if not found:
            raise ExportError(f"The model has no input {name!r}; its inputs are {described}. Name one with --input.")
        value = found[0]
    shape, dtype = shape_of(value), dtype_of(value)
    if not (dtype.is_floating_point() or dtype.is_integer()):
        raise ExportError(
            f"The editable input {value.name!r} has elements of type {dtype.name}; expected floating-point numbers or "
            "integers (latents, token ids). Name another input with --input NAME, or cast inside the model."
        )
    if axes is None:
        axes = tuple(range(2, len(shape))) if len(shape) >= 4 else (1,)
    axes = tuple(axis + len(shape) if axis < 0 else axis for axis in axes)
    if not axes or len(set(axes)) != len(axes) or any(not 0 <= axis < len(shape) for axis in axes):
        raise ExportError(f"--axes {list(axes)} does not fit input {value.name!r} of shape {list(shape)}.")
    return str(value.name), axes
