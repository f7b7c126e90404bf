"""Adds nodes, constants and inputs to a graph under construction, sharing equal ones."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

__all__ = ["BindingTime", "NodeBuilder"]

AttributeValue = int | float | str | Sequence[int]


class BindingTime(enum.IntEnum):
    """When the value of a node is known."""

    CONSTANT = 0
    CONDITION = 1
    STATISTIC = 2
    EDIT = 3


class NodeBuilder:
    """A graph under construction. Equal nodes on equal inputs are made once."""

    def __init__(self) -> None:
        self.inputs: list[ir.Value] = []
        self.nodes: list[ir.Node] = []
        self.initializers: dict[str, ir.Value] = {}
        self.time: dict[ir.Value, BindingTime] = {}
        self._made: dict[tuple[object, ...], tuple[ir.Value, ...]] = {}
        self._counter = 0

    def input(self, name: str, dtype: ir.DataType, shape: Sequence[int | str], time: BindingTime) -> ir.Value:
        """The graph input of that name, added on first use."""
        for value in self.inputs:
            if value.name == name:
                return value
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(list(shape)))
        self.inputs.append(value)
        self.time[value] = time
        return value

    def initializer(self, name: str, tensor: ir.TensorProtocol) -> ir.Value:
        """The initializer of that name, added on first use."""
        if name not in self.initializers:
            value = ir.Value(
                name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()), const_value=tensor
            )
            self.initializers[name] = value
            self.time[value] = BindingTime.CONSTANT
        return self.initializers[name]

    def constant(self, array: np.ndarray) -> ir.Value:
        """An initializer with that content."""
        array = np.asarray(array, order="C")
        digest = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes()).hexdigest()
        # Named by its contents: a model that is rewritten may itself have been built here, and hold constants.
        name = f"constant_{digest[:32]}"
        return self.initializers.get(name) or self.initializer(name, ir.Tensor(array, name=name))

    def ints(self, values: Sequence[int]) -> ir.Value:
        """A 1-D int64 constant."""
        return self.constant(np.array(values, dtype=np.int64))

    def op(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, AttributeValue] | None = None,
        *,
        domain: str = "",
        dtype: ir.DataType | None = None,
    ) -> ir.Value:
        """The only output of a node."""
        return self.ops(op_type, inputs, attributes, domain=domain, dtype=dtype)[0]

    def ops(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, AttributeValue] | None = None,
        *,
        domain: str = "",
        outputs: int = 1,
        dtype: ir.DataType | None = None,
    ) -> tuple[ir.Value, ...]:
        """The outputs of a node; an equal node made before is used again."""
        plain = {name: tuple(v) if isinstance(v, (list, tuple)) else v for name, v in (attributes or {}).items()}
        key = (domain, op_type, tuple(inputs), tuple(sorted(plain.items())), outputs)
        if key not in self._made:
            converted = ir.convenience.convert_attributes(dict(attributes or {}))
            self._made[key] = self._add(domain, op_type, inputs, converted, outputs, dtype)
        return self._made[key]

    def clone(
        self, node: ir.Node, inputs: Sequence[ir.Value | None], **changes: AttributeValue
    ) -> tuple[ir.Value, ...]:
        """The outputs of a copy of a node on other inputs, with some attributes changed."""
        attributes = [a for name, a in node.attributes.items() if name not in changes]
        attributes += ir.convenience.convert_attributes(dict(changes)) if changes else []
        return self._add(node.domain, node.op_type, inputs, attributes, len(node.outputs), None, node.name)

    def add(self, node: ir.Node) -> None:
        """Adds a node that was made elsewhere, such as one with a subgraph."""
        self.nodes.append(node)
        for value in node.outputs:
            self.time[value] = BindingTime.EDIT

    def restart(self) -> list[ir.Node]:
        """Hands over the nodes made so far and starts an empty list, so that a pass can rebuild it."""
        nodes, self.nodes = self.nodes, []
        self._made.clear()
        return nodes

    def _add(
        self,
        domain: str,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Sequence[ir.Attr],
        outputs: int,
        dtype: ir.DataType | None,
        hint: str | None = None,
    ) -> tuple[ir.Value, ...]:
        self._counter += 1
        name = f"{hint or op_type}_{self._counter}"
        node = ir.Node(domain, op_type, inputs, attributes, num_outputs=outputs, name=name)
        time = max((self.time[value] for value in inputs if value is not None), default=BindingTime.CONSTANT)
        for index, value in enumerate(node.outputs):
            value.name = f"{name}_out{index or ''}"
            if dtype is not None:
                value.type = ir.TensorType(dtype)
            self.time[value] = time
        self.nodes.append(node)
        return tuple(node.outputs)
