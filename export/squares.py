"""Finds squares, and what is made of them until they are roots again: half precision does not hold them.

It ends at 65,504, and with it the squares of all numbers beyond 255. Norms that exporters write out (root mean square,
variance, length) square, sum, take the root and divide:

    Pow(x, 2) or Mul(x, x) -> ReduceMean -> Add(e) -> Sqrt -> Reciprocal -> Mul(x, .)
    ReduceL2(x) -> Max(e) -> Expand -> Div(x, .)

Norms that are operators (LayerNormalization and its like) and Softmax need none of this: runtimes compute them in
single precision inside.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

__all__ = ["squares"]

_SUMS = frozenset({"ReduceMean", "ReduceSum"})
_SQUARED_SUMS = frozenset({"ReduceSumSquare", "ReduceL2"})
_MOVES = frozenset({"Reshape", "Expand", "Unsqueeze", "Squeeze", "Transpose", "Identity"})
_WITH_NUMBERS = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Min", "Clip"})


def squares(graph: ir.Graph) -> set[ir.Node]:
    """The nodes from squares to the product or quotient with their root, which belong in single precision."""
    found: set[ir.Node] = set()
    for node in graph.all_nodes():
        if node.domain != "":
            continue
        if node.op_type in _SQUARED_SUMS:
            _follow(node, found, rooted=node.op_type == "ReduceL2")
        elif _is_square(node):
            for total in [user for user in _users(node) if user.op_type in _SUMS]:
                found.add(node)
                _follow(total, found, rooted=False)
    for node in [node for node in found if _is_square(node)]:
        found.update(_centring(node))
    # A view of what is centred comes along, so that group norms are still recognised by it.
    found.update(node for node in _makers(found) if node.op_type == "Reshape" and found.issuperset(_users(node)))
    return found


def _follow(node: ir.Node, found: set[ir.Node], *, rooted: bool) -> None:
    """Adds a node, and what is made of it until something else is multiplied or divided by its root."""
    if node in found:
        return
    found.add(node)
    rooted = rooted or _is_root(node)
    for user in _users(node):
        if user.domain != "":
            continue
        if _goes_on(user, node.outputs[0]):
            _follow(user, found, rooted=rooted)
        elif user.op_type in ("Mul", "Div") and rooted:
            found.add(user)
        elif user.op_type == "Sub" and not rooted:
            # The mean of the squares less the square of the mean.
            found.update(other for other in _makers([user]) if _is_square(other))
            _follow(user, found, rooted=False)


def _goes_on(user: ir.Node, value: ir.Value) -> bool:
    """Whether a node makes something of the value alone, or of it and numbers."""
    if user.op_type in _WITH_NUMBERS:
        return all(one is None or one is value or _number(one) is not None for one in user.inputs)
    return user.op_type in _MOVES or user.op_type in ("Sqrt", "Reciprocal") or _is_power(user)


def _centring(square: ir.Node) -> list[ir.Node]:
    """What made ``v - mean(v)`` for that square: nothing if something else is squared."""
    centred = square.inputs[0].producer() if square.inputs[0] is not None else None
    if centred is None or centred.op_type != "Sub" or centred.inputs[1] is None:
        return []
    mean = centred.inputs[1].producer()
    is_mean = mean is not None and mean.op_type == "ReduceMean" and mean.inputs[0] is centred.inputs[0]
    return [centred, mean] if mean is not None and is_mean else []


def _users(node: ir.Node) -> list[ir.Node]:
    return [user for output in node.outputs for user, _ in output.uses()]


def _makers(nodes: set[ir.Node] | list[ir.Node]) -> Iterator[ir.Node]:
    for node in list(nodes):
        for value in node.inputs:
            maker = value.producer() if value is not None else None
            if maker is not None:
                yield maker


def _is_square(node: ir.Node) -> bool:
    if node.domain != "" or len(node.inputs) != 2:
        return False
    if node.op_type == "Mul":
        return node.inputs[0] is node.inputs[1]
    return node.op_type == "Pow" and _number(node.inputs[1]) == 2.0


def _is_power(node: ir.Node) -> bool:
    return node.op_type == "Pow" and _number(node.inputs[1]) is not None


def _is_root(node: ir.Node) -> bool:
    exponent = _number(node.inputs[1]) if node.op_type == "Pow" else None
    return node.op_type == "Sqrt" or (exponent is not None and abs(exponent) < 1.0)


def _number(value: ir.Value | None) -> float | None:
    """A constant of one element."""
    tensor = ir.convenience.get_const_tensor(value) if value is not None else None
    array = tensor.numpy() if tensor is not None and tensor.size == 1 else None
    return float(array.astype(np.float64).reshape(())) if array is not None else None
