"""Another floating-point type for a whole model: weights, constants, casts, inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

import numpy as np
import onnx_ir as ir

from retouch.errors import ExportError
from retouch.export.bridges import bridge_inputs, bridge_nodes, bridge_outputs
from retouch.export.squares import squares

__all__ = ["check_precision", "convert", "refuse_bfloat16"]

_TYPES = {"float32": ir.DataType.FLOAT, "float16": ir.DataType.FLOAT16}
_SCALES = {"Resize": 2, "Upsample": 1}
"""Which operand of an operator holds scales."""
_SINGLE_OR_LESS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def convert(model: ir.Model, precision: str, tell: Callable[[str], None], *, edges: bool = True) -> int:
    """Converts a model in place; returns how many weights and constants changed their type.

    Double precision stays: where a model has it, it was asked for. From bfloat16 to float32 no number changes. In
    float16, squares that are summed stay single until a root is taken of them.

    Requires: for float16, an element type of every value.

    Args:
        model: the model.
        precision: ``float32`` or ``float16``; constants beyond the range of the latter become its largest numbers.
        tell: called with a line that says what was done.
        edges: whether inputs and outputs change too. If not, they are single, with casts to and from float16.

    Raises:
        ExportError: there is no such precision.
    """
    check_precision(precision)
    target, graph = _TYPES[precision], model.graph
    single = squares(graph) if target == ir.DataType.FLOAT16 else set()
    converted = _convert_nodes(model, single, target)
    kept = _kept(model, single)
    for value in graph.initializers.values():
        if value not in kept:
            converted += _convert_initializer(value, target)
    kept_edges = not edges and target != ir.DataType.FLOAT
    for value in () if kept_edges else graph.inputs:
        _retype(value, target)
    bridge_nodes(graph, single, target)
    if kept_edges:
        bridge_inputs(graph, single, target)
        bridge_outputs(graph, target)
    tell(f"convert {converted} weights and constants to {precision}")
    return converted


def check_precision(precision: str) -> None:
    """Refuses a precision that models are not converted to.

    Raises:
        ExportError: says which there are.
    """
    if precision not in _TYPES:
        raise ExportError(f"Expected precision to be {' or '.join(map(repr, _TYPES))}, got {precision!r}.")


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


def _convert_nodes(model: ir.Model, single: AbstractSet[ir.Node], target: ir.DataType) -> int:
    converted, kept = 0, _kept(model, single)
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for node in [node for graph in graphs for node in graph.all_nodes()]:
        if node in single or not kept.isdisjoint(node.outputs):
            continue
        converted += _convert_attributes(node, target)
        for output in node.outputs:
            _retype(output, target)
    for function in model.functions.values():
        for value in function.inputs:
            _retype(value, target)
    return converted


def _kept(model: ir.Model, single: AbstractSet[ir.Node]) -> set[ir.Value]:
    """The constants that stay single: what only nodes in single precision read, and the scales of Resize."""
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    kept = {value for graph in graphs for node in graph.all_nodes() for value in _scales(node)}
    for value in [value for node in single for value in node.inputs if value is not None]:
        if _is_constant(value) and all(user in single for user, _ in value.uses()):
            kept.add(value)
    return kept


def _scales(node: ir.Node) -> list[ir.Value]:
    """The constants that an operator wants in single precision whatever its other operands are: Resize its scales."""
    place = _SCALES.get(node.op_type) if node.domain == "" else None
    scales = node.inputs[place] if place is not None and place < len(node.inputs) else None
    return [scales] if scales is not None and _is_constant(scales) else []


def _is_constant(value: ir.Value) -> bool:
    producer = value.producer()
    return value.is_initializer() or (producer is not None and producer.op_type == "Constant")


def _convert_initializer(value: ir.Value, target: ir.DataType) -> int:
    changes = value.const_value is not None and _changes(value.const_value.dtype, target)
    if changes and value.const_value is not None:
        value.const_value = _cast(value.const_value, target)
    _retype(value, target)
    return int(changes)


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
