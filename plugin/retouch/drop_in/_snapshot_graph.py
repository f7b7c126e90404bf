"""The graph that reads a binding: copies of the inputs, and outputs filled with their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape

from retouch.bundle import Manifest, TensorSpec

COPY = "retouch.copy."
"""Begins the name of the copy of an input."""

_OPSET, _IR_VERSION = 18, 10


def snapshot_model(manifest: Manifest) -> ir.Model:
    """A model with a bundle's inputs and outputs that copies every input, then fills output ``i`` with ``i``.

    What fills the outputs is computed from the copies, so that it is written after them: an output may lie in the
    memory of an input.
    """
    tape = Tape()
    inputs = [_value(spec, spec.name) for spec in manifest.inputs]
    copies = [
        tape.op("Identity", [value], output=_value(spec, COPY + spec.name))
        for value, spec in zip(inputs, manifest.inputs, strict=True)
    ]
    total = reduce(lambda one, other: tape.op("Add", [one, other]), [tape.op("Size", [copy]) for copy in copies])
    zero = tape.op("Mul", [total, _constant(tape, "zero", 0)])
    specs = [output.tensor for output in manifest.outputs]
    outputs = [_filled(tape, spec, number, zero) for number, spec in enumerate(specs)]
    graph = ir.Graph(
        inputs,
        [*outputs, *copies],
        nodes=tape.nodes,
        initializers=tape.initializers,
        opset_imports={"": _OPSET},
        name="snapshot",
    )
    return ir.Model(graph, ir_version=_IR_VERSION)


def _filled(tape: Tape, spec: TensorSpec, number: int, zero: ir.Value) -> ir.Value:
    value = _value(spec, spec.name)
    whole = tape.op("Add", [zero, _constant(tape, f"number.{number}", number)])
    cast = tape.op("Cast", [whole], {"to": _dtype(spec)})
    return tape.op("Expand", [cast, _constant(tape, f"shape.{number}", spec.shape)], output=value)


def _constant(tape: Tape, name: str, value: int | Sequence[int]) -> ir.Value:
    return tape.initializer(ir.tensor(np.array(value, np.int64), name=f"retouch.{name}"))


def _value(spec: TensorSpec, name: str) -> ir.Value:
    return ir.Value(name=name, shape=ir.Shape(spec.shape), type=ir.TensorType(_dtype(spec)))


def _dtype(spec: TensorSpec) -> ir.DataType:
    return ir.DataType.from_numpy(np.dtype(spec.dtype))
