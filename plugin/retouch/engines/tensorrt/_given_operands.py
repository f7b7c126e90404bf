"""Calls of functions without some operands  ->  calls of functions that do not have these.

ONNX lets a node leave operands of a function out; TensorRT's parser refuses such a node (TensorRT-RTX 1.7.1 says
"node.input().size() == function.input().size()"), and one with empty names as well. Before: nodes of the graph may lack
operands of their functions. After: none does; what the functions' bodies read of them is left out there.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

__all__ = ["with_given_operands"]

Key = tuple[str, str]


def with_given_operands(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, or a copy of it in which every call of a function gives all operands that it has."""
    functions = {(function.domain, function.name): function for function in model.functions}
    if not any(_missing(node, functions) for node in model.graph.node):
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    made: dict[Key, onnx.FunctionProto] = {}
    for node in changed.graph.node:
        missing = _missing(node, functions)
        if missing:
            function = _without(functions[node.domain, node.op_type], missing)
            made[function.domain, function.name] = function
            given = [name for name in node.input if name]
            node.op_type = function.name
            node.ClearField("input")
            node.input.extend(given)
    changed.functions.extend(made.values())
    return changed


def _missing(node: onnx.NodeProto, functions: Mapping[Key, onnx.FunctionProto]) -> tuple[str, ...]:
    """The operands of a node's function that it does not give."""
    function = functions.get((node.domain, node.op_type))
    if function is None:
        return ()
    given = dict(zip(function.input, node.input, strict=False))
    return tuple(name for name in function.input if not given.get(name))


def _without(function: onnx.FunctionProto, missing: tuple[str, ...]) -> onnx.FunctionProto:
    lean = onnx.FunctionProto()
    lean.CopyFrom(function)
    lean.name = f"{function.name}Without{''.join(name.capitalize() for name in missing)}"
    lean.ClearField("input")
    lean.input.extend(name for name in function.input if name not in missing)
    for node in lean.node:
        names = ["" if name in missing else name for name in node.input]
        while names and not names[-1]:
            names.pop()
        node.ClearField("input")
        node.input.extend(names)
    return lean
