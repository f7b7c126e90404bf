"""Another floating-point type for a whole model: weights, constants, casts, inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from retouch.errors import ExportError

__all__ = ["convert", "refuse_bfloat16"]

_TYPES = {"float32": ir.DataType.FLOAT, "float16": ir.DataType.FLOAT16}
_SCALES = {"Resize": 2, "Upsample": 1}
"""Which operand of an operator holds scales."""
_SINGLE_OR_LESS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def convert(model: ir.Model, precision: str, tell: Callable[[str], None]) -> int:
    """Converts a model in place; returns how many weights and constants changed their type.

    Double precision stays: where a model has it, it was asked for. From bfloat16 to float32 no number changes.

    Args:
        model: the model.
        precision: ``float32`` or ``float16``; constants beyond the range of the latter become its largest numbers.
        tell: called with a line that says what was done.

    Raises:
        ExportError: there is no such precision.
    """
    if precision not in _TYPES:
        raise ExportError(f"Expected precision to be {' or '.join(map(repr, _TYPES))}, got {precision!r}.")
    target = _TYPES[precision]
    converted = 0
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    kept = {value for graph in graphs for node in graph.all_nodes() for value in _always_single(node)}
    for graph in graphs:
        for node in graph.all_nodes():
            if not kept.isdisjoint(node.outputs):
                continue
            converted += _convert_attributes(node, target)
            for output in node.outputs:
                _retype(output, target)
        for value in graph.inputs:
            _retype(value, target)
    for value in model.graph.initializers.values():
        if value in kept:
            continue
        if value.const_value is not None and _changes(value.const_value.dtype, target):
            value.const_value = _cast(value.const_value, target)
            converted += 1
        _retype(value, target)
    tell(f"convert {converted} weights and constants to {precision}")
    return converted


def refuse_bfloat16(graph: ir.Graph) -> None:
    """Refuses a model that ONNX Runtime's CPU provider cannot run, which verification needs.

    Raises:
        ExportError: an input or a weight is of type bfloat16.
    """
    values = [*graph.inputs, *graph.initializers.values()]
    if any(value.dtype == ir.DataType.BFLOAT16 for value in values):
        raise ExportError(
            "The model computes in bfloat16, for which ONNX Runtime has no kernels on CPUs, so that nothing could be "
            "verified. Pass --precision float32, which keeps every number, or --precision float16 (in Python, "
            "precision=...); or verify=False, for engines that run bfloat16."
        )


def _always_single(node: ir.Node) -> list[ir.Value]:
    """The constants that an operator wants in single precision whatever its other operands are: Resize its scales."""
    place = _SCALES.get(node.op_type) if node.domain == "" else None
    scales = node.inputs[place] if place is not None and place < len(node.inputs) else None
    if scales is None or not (scales.is_initializer() or _is_constant(scales)):
        return []
    return [scales]


def _is_constant(value: ir.Value) -> bool:
    producer = value.producer()
    return producer is not None and producer.op_type == "Constant"


def _convert_attributes(node: ir.Node, target: ir.DataType) -> int:
    converted = 0
    for name, attribute in list(node.attributes.items()):
        if attribute.type == ir.AttributeType.TENSOR and _changes(attribute.as_tensor().dtype, target):
            node.attributes[name] = ir.AttrTensor(name, _cast(attribute.as_tensor(), target))
            converted += 1
        elif name in ("to", "dtype") and _changes(ir.DataType(attribute.as_int()), target):
            node.attributes[name] = ir.AttrInt64(name, int(target))
    return converted


def _retype(value: ir.Value, target: ir.DataType) -> None:
    if value.dtype is not None and _changes(value.dtype, target):
        value.dtype = target


def _changes(dtype: ir.DataType, target: ir.DataType) -> bool:
    return dtype in _SINGLE_OR_LESS and dtype != target


def _cast(tensor: ir.TensorProtocol, target: ir.DataType) -> ir.TensorProtocol:
    array = tensor.numpy().astype(np.float32)
    if target == ir.DataType.FLOAT16:
        largest = float(np.finfo(np.float16).max)
        array = np.where(np.isfinite(array), np.clip(array, -largest, largest), array)
    return ir.Tensor(array.astype(target.numpy()), name=tensor.name)
