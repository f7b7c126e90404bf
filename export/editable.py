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
        ExportError: the input is absent or ambiguous, holds no numbers, has no positions, or an axis is out of range.
    """
    described = ", ".join(f"{value.name}{list(shape_of(value))}" for value in graph.inputs) or "none"
    if name is None:
        candidates = [value for value in graph.inputs if len(shape_of(value)) >= 3] or [
            value for value in graph.inputs if len(shape_of(value)) == 2
        ]
        named = [value for value in candidates if value.name in _NAMES]
        chosen = named if len(named) == 1 else candidates
        if not chosen:
            raise ExportError(
                f"No input carries editable positions: expected one of two dims or more, got {described}. Export the "
                "part of the model that takes latents, an image or token ids."
            )
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
    return str(value.name), _axes_of(str(value.name), shape, axes)


def _axes_of(name: str, shape: tuple[int, ...], axes: tuple[int, ...] | None) -> tuple[int, ...]:
    """The axes of the input that carry positions, counted from the first."""
    rank = len(shape)
    if rank == 0 or (axes is None and rank == 1):
        raise ExportError(
            f"Input {name!r} of shape {list(shape)} has no axis that is known to carry positions: expected two "
            "dims or more (batch and positions). Name another input with --input, or its axes with --axes."
        )
    if axes is None:
        return tuple(range(2, rank)) if rank >= 4 else (1,)
    counted = tuple(axis + rank if axis < 0 else axis for axis in axes)
    if not counted or len(set(counted)) != len(counted) or any(not 0 <= axis < rank for axis in counted):
        raise ExportError(
            f"--axes {list(axes)} does not fit input {name!r} of shape {list(shape)}: expected different axes from 0 "
            f"to {rank - 1}, those that carry positions, such as --axes 2,3 of [batch, channels, height, width]."
        )
    return counted
