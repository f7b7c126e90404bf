"""Shapes of a graph's values while fusions need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import onnx_ir as ir
from onnx_ir.passes import common as passes

__all__ = ["inferred_shapes"]


@contextmanager
def inferred_shapes(model: ir.Model) -> Iterator[None]:
    """Gives every value its shape as far as it follows from those of the inputs, and takes them away again.

    A runtime plans its memory by the shapes that a file states, so none stays that was only good for finding chains.
    """
    before = {value: (value.type, value.shape) for node in model.graph for value in node.outputs}
    passes.ShapeInferencePass(check_type=False, strict_mode=False)(model)
    try:
        yield
    finally:
        for value in [value for node in model.graph for value in node.outputs]:
            value.type, value.shape = before.get(value, (value.type, None))
