"""Why sizes do not fit a model: skip connections that do not meet, values that no memory holds."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping

import onnx_ir as ir

from retouch.errors import ExportError
from retouch.export.model_shapes import attribute, dtype_of, shape_of

__all__ = ["check_memory", "sized", "skip_advice"]

_COPIES = 4
"""A verified export holds its largest value at least so often: fed, computed, kept, and in the reference."""

Sized = tuple[str, tuple[int, ...], int]


def check_memory(values: Iterable[Sized], fix: Mapping[str, int]) -> None:
    """Refuses sizes for which an export would run out of memory.

    Args:
        values: name, shape and bytes per element of the values.
        fix: the sizes that were asked for, by name.

    Raises:
        ExportError: the largest value takes more than a quarter of this machine's memory.
    """
    memory = _physical_bytes()
    sizes = ((math.prod(shape) * width, name, shape) for name, shape, width in values)
    size, name, shape = max(sizes, default=(0, "", ()))
    if memory is not None and size * _COPIES > memory:
        asked = ", ".join(f"{key}={number}" for key, number in fix.items()) or "these sizes"
        raise ExportError(
            f"With {asked} the value {name!r} of shape {shape} takes {size / 2**30:.0f} GiB, expected at most a "
            f"{_COPIES}th of this machine's {memory / 2**30:.0f} GiB: it is held about so often. Give smaller sizes."
        )


def sized(graph: ir.Graph) -> Iterable[Sized]:
    """Name, shape and bytes per element of every value that is fed or computed."""
    for value in (*graph.inputs, *(value for node in graph for value in node.outputs)):
        yield str(value.name), shape_of(value), math.ceil(dtype_of(value).itemsize)


def skip_advice(graph: ir.Graph, node: ir.Node, fix: Mapping[str, int]) -> str | None:
    """Why the operands of a node do not meet and which sizes would; ``None`` if that is not what is wrong.

    A model that halves its input n times and doubles it again meets its own skip connections at multiples of 2 ** n.
    """
    shapes = [list(value.shape) for value in node.inputs if value is not None and value.shape is not None]
    multiple = max(_strides(graph).values(), default=1)
    wrong = {name: size for name, size in fix.items() if size % multiple}
    if len({tuple(map(str, shape)) for shape in shapes}) < 2 or multiple == 1 or not wrong:
        return None
    better = ", ".join(f"{name}={_around(size, multiple)}" for name, size in wrong.items())
    return (
        f"The operands of {node.op_type} node {node.name!r} do not meet: they have the shapes "
        f"{' and '.join(map(str, shapes))}. The model makes its input smaller by a factor of {multiple} and larger "
        f"again, so that sizes have to be multiples of {multiple}. Pass --fix {better}."
    )


def _around(size: int, multiple: int) -> str:
    below, above = size // multiple * multiple, -(-size // multiple) * multiple
    return f"{below} or {above}" if below else str(above)


def _strides(graph: ir.Graph) -> dict[ir.Value, int]:
    """Per value the product of the strides on its way from the inputs."""
    factors: dict[ir.Value, int] = {}
    for node in graph:
        before = max((factors.get(value, 1) for value in node.inputs if value is not None), default=1)
        down = max(attribute(node, "strides", (1,))) if node.op_type != "ConvTranspose" else 1
        factors.update(dict.fromkeys(node.outputs, before * down))
    return factors


def _physical_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return None
