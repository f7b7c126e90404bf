"""The masked reference: an independent full-size graph that defines what an edit run has to give.

Two copies of the model in one graph. The first computes the base run from ``old.<input>``. The second computes from
``new.<input>`` and has ``Where(active, new, old)`` after every row-carrying value, the editable input included. With
cached moments, GroupNorm of the second copy takes the moments of the first, and held statistics are the first's too.
Rows, layouts and gathers of the edit graph play no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from retouch.export.analysis import Analysis
from retouch.export.lattice import Beside, Grid, Rows
from retouch.export.model_shapes import attribute, constant_value, dtype_of, shape_of
from retouch.export.rules._rule import RETOUCH_DOMAIN

__all__ = ["masked_reference"]


def masked_reference(model: ir.Model, analysis: Analysis, *, corrected_moments: bool) -> ir.Model:
    """The masked reference of a canonical model.

    Inputs are ``old.<input>`` and ``new.<input>`` for every input and ``active.<grid>`` (bool, of the grid's dims) for
    every grid; outputs are the model's own, under their names.
    """
    twin = _Twin(analysis, corrected_moments)
    for value in model.graph.initializers.values():
        twin.share(value)
    for value in model.graph.inputs:
        twin.open(value)
    for node in model.graph:
        twin.visit(node)
    outputs = [twin.result(value) for value in model.graph.outputs]
    graph = ir.Graph(
        twin.inputs,
        outputs,
        nodes=twin.nodes,
        initializers=twin.initializers,
        opset_imports={domain: opset for domain, opset in model.opset_imports.items() if domain != RETOUCH_DOMAIN},
        name="masked_reference",
    )
    return ir.Model(graph, ir_version=model.ir_version, producer_name="retouch")


@dataclass
class _Twin:
    analysis: Analysis
    corrected_moments: bool
    inputs: list[ir.Value] = field(default_factory=list)
    nodes: list[ir.Node] = field(default_factory=list)
    initializers: list[ir.Value] = field(default_factory=list)
    old: dict[ir.Value, ir.Value] = field(default_factory=dict)
    new: dict[ir.Value, ir.Value] = field(default_factory=dict)
    masks: dict[str, ir.Value] = field(default_factory=dict)

    def share(self, value: ir.Value) -> None:
        copy = ir.Value(name=value.name, type=value.type, shape=value.shape, const_value=value.const_value)
        self.initializers.append(copy)
        self.old[value] = self.new[value] = copy

    def open(self, value: ir.Value) -> None:
        for prefix, copies in (("old", self.old), ("new", self.new)):
            copies[value] = ir.Value(name=f"{prefix}.{value.name}", type=value.type, shape=value.shape)
            self.inputs.append(copies[value])
        self._mask(value)

    def visit(self, node: ir.Node) -> None:
        if node.domain == RETOUCH_DOMAIN:
            self._group_norm(node)
        else:
            for prefix, copies in (("old", self.old), ("new", self.new)):
                inputs = [None if value is None else copies[value] for value in node.inputs]
                made = self._node(node.op_type, inputs, tuple(node.attributes.values()), node.domain, len(node.outputs))
                for value, output in zip(node.outputs, made.outputs, strict=True):
                    output.name = f"{prefix}.{value.name}"
                    copies[value] = output
        for value in node.outputs:
            self._mask(value)

    def result(self, value: ir.Value) -> ir.Value:
        output = self._node("Identity", [self.new[value]]).outputs[0]
        output.name, output.type, output.shape = value.name, value.type, value.shape
        return output

    def _mask(self, value: ir.Value) -> None:
        fact = self.analysis.facts.of(value)
        held = not self.corrected_moments and value in self.analysis.facts.held
        if held or (isinstance(fact, Beside) and fact.frozen):
            self.new[value] = self.old[value]
        if not isinstance(fact, Rows):
            return
        rows = fact
        mask = self._reshape(self._ordered(rows), self._mask_shape(rows, len(shape_of(value))))
        self.new[value] = self._chosen(mask, self.new[value], self.old[value], dtype_of(value))

    def _chosen(self, mask: ir.Value, new: ir.Value, old: ir.Value, dtype: ir.DataType) -> ir.Value:
        """``Where``, in a type that engines implement it for."""
        if dtype.is_floating_point() or dtype in (ir.DataType.INT32, ir.DataType.INT64):
            return self._op("Where", [mask, new, old])
        number = ir.DataType.UINT8 if dtype == ir.DataType.BOOL else ir.DataType.INT64
        numbers = [self._cast(part, number) for part in (new, old)]
        return self._cast(self._op("Where", [mask, *numbers]), dtype)

    def _mask_shape(self, rows: Rows, rank: int) -> list[int]:
        shape = [1] * rank
        sizes = (rows.grid.size,) if rows.flat else rows.grid.dims
        for axis, size in zip(rows.axes, sizes, strict=True):
            shape[axis] = size
        return shape

    def _ordered(self, rows: Rows) -> ir.Value:
        """The grid's mask with its axes in the order in which they stand in the value."""
        order = sorted(range(len(rows.axes)), key=lambda i: rows.axes[i])
        mask = self._active(rows.grid)
        if order == sorted(order):
            return mask
        return self._node("Transpose", [mask], tuple(ir.convenience.convert_attributes({"perm": order}))).outputs[0]

    def _active(self, grid: Grid) -> ir.Value:
        if grid.id not in self.masks:
            value = ir.Value(name=f"active.{grid.id}", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape(grid.dims))
            self.masks[grid.id] = value
            self.inputs.append(value)
        return self.masks[grid.id]

    def _group_norm(self, node: ir.Node) -> None:
        value, output = node.inputs[0], node.outputs[0]
        assert value is not None
        groups, epsilon = int(attribute(node, "num_groups")), float(attribute(node, "epsilon"))
        old = self._moments(self.old[value], value, groups)
        on_rows = self.analysis.facts.rows(output) is not None and node not in self.analysis.refusals
        frozen = not self.corrected_moments and on_rows
        new = old if frozen else self._moments(self.new[value], value, groups)
        self.old[output] = self._normalised(self.old[value], value, old, groups, epsilon)
        self.new[output] = self._normalised(self.new[value], value, new, groups, epsilon)

    def _moments(self, tensor: ir.Value, value: ir.Value, groups: int) -> tuple[ir.Value, ir.Value]:
        # In double: sums over a quarter of a million elements are off by more than what the checks allow.
        grouped = self._reshape(self._cast(tensor, ir.DataType.DOUBLE), [shape_of(value)[0], groups, -1])
        mean = self._op("ReduceMean", [grouped, self._ints([2])])
        centred = self._op("Sub", [grouped, mean])
        variance = self._op("ReduceMean", [self._op("Mul", [centred, centred]), self._ints([2])])
        return self._cast(mean, ir.DataType.FLOAT), self._cast(variance, ir.DataType.FLOAT)

    def _normalised(
        self, tensor: ir.Value, value: ir.Value, moments: tuple[ir.Value, ir.Value], groups: int, epsilon: float
    ) -> ir.Value:
        grouped = self._reshape(self._cast(tensor, ir.DataType.FLOAT), [shape_of(value)[0], groups, -1])
        spread = self._op("Sqrt", [self._op("Add", [moments[1], self._constant(np.array(epsilon, np.float32))])])
        result = self._op("Div", [self._op("Sub", [grouped, moments[0]]), spread])
        return self._cast(self._reshape(result, list(shape_of(value))), dtype_of(value))

    def _cast(self, tensor: ir.Value, dtype: ir.DataType) -> ir.Value:
        return self._node("Cast", [tensor], tuple(ir.convenience.convert_attributes({"to": int(dtype)}))).outputs[0]

    def _reshape(self, tensor: ir.Value, shape: list[int]) -> ir.Value:
        return self._op("Reshape", [tensor, self._ints(shape)])

    def _op(self, op_type: str, inputs: list[ir.Value]) -> ir.Value:
        return self._node(op_type, inputs).outputs[0]

    def _ints(self, values: list[int]) -> ir.Value:
        return self._constant(np.array(values, dtype=np.int64))

    def _constant(self, array: np.ndarray) -> ir.Value:
        value = constant_value(f"reference_constant_{len(self.initializers)}", array)
        self.initializers.append(value)
        return value

    def _node(
        self,
        op_type: str,
        inputs: list[ir.Value | None] | list[ir.Value],
        attributes: tuple[ir.Attr, ...] = (),
        domain: str = "",
        outputs: int = 1,
    ) -> ir.Node:
        name = f"reference_{len(self.nodes)}"
        node = ir.Node(domain, op_type, inputs, attributes, num_outputs=outputs, name=name)
        for index, value in enumerate(node.outputs):
            value.name = f"{name}_out{index}"
        self.nodes.append(node)
        return node
