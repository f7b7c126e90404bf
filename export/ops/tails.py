"""Tails: what is done to the rows of a product while they are at hand, as part of the operator's name.

``EditConvAddedAffineSilu`` is EditConv, then s = rows + residual, then silu(s * factor + shift). The operators of a
tail's name stand in this order, each with its operands behind those of the product:

- ``Gated``: times ``gate`` [C],
- ``Added``: plus ``residual`` [M, C],
- ``Kept``: what there is at this point is a second result,
- ``Affine``: times ``factor`` [C], plus ``shift`` [C],
- ``Silu``, ``Gelu`` or ``TanhGelu``.

``Rows...`` is a tail by itself, of rows that no product made. Operators whose names begin with ``Batch`` have rows
[M, B, C] and take ``gate``, ``factor`` and ``shift`` [C], or [B, C] if every sample has its own.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import onnx_ir as ir

__all__ = ["BATCH", "NORM", "PRODUCTS", "ROWS", "STACKED_NORM", "Activation", "Tail", "with_tail"]

BATCH = "Batch"
"""What the names of operators begin with whose rows are those of several samples."""

PRODUCTS = (
    "EditConv",
    "RowLinear",
    "DepthwiseEditConv",
    "GroupedEditConv",
    "BatchEditConv",
    "BatchRowLinear",
    "BatchDepthwiseEditConv",
    "BatchGroupedEditConv",
)
NORM = "EditGroupNorm"
STACKED_NORM = "StackedGroupNorm"
ROWS = "Rows"


class Activation(enum.Enum):
    """The last part of a tail."""

    NONE = ""
    SILU = "Silu"
    GELU = "Gelu"
    TANH_GELU = "TanhGelu"


@dataclass(frozen=True)
class Tail:
    """Which parts a tail has."""

    gated: bool = False
    added: bool = False
    kept: bool = False
    affine: bool = False
    activation: Activation = Activation.NONE

    @property
    def name(self) -> str:
        """What it adds to an operator's name."""
        parts = {"Gated": self.gated, "Added": self.added, "Kept": self.kept, "Affine": self.affine}
        return "".join(part for part, there in parts.items() if there) + self.activation.value

    @property
    def only_maps(self) -> bool:
        """Whether every number of the result depends on one number of the rows alone, and nothing is kept."""
        return not (self.gated or self.added or self.kept)

    @classmethod
    def all(cls) -> Iterator[Tail]:
        """Every tail, the empty one first. Nothing is kept that is the result anyway."""
        both = (False, True)
        for activation, affine, kept, added, gated in product(Activation, both, both, both, both):
            if not kept or affine or activation is not Activation.NONE:
                yield cls(gated, added, kept, affine, activation)


def with_tail(function: ir.Function, tail: Tail) -> ir.Function:
    """The function of a product, or of rows as they are, after a tail was put behind it."""
    result, *others = function.outputs
    body = _Body(function)
    if tail.gated:
        result = body.add("Mul", result, body.operand("gate"))
    if tail.added:
        result = body.add("Add", result, body.operand("residual"))
    kept = [result] if tail.kept else []
    if tail.affine:
        result = body.add("Add", body.add("Mul", result, body.operand("factor")), body.operand("shift"))
    function.outputs[:] = [_activated(body, result, tail.activation), *kept, *others]
    function.name += tail.name
    return function


@dataclass(frozen=True)
class _Body:
    """The operands and nodes of a function."""

    function: ir.Function

    def operand(self, name: str) -> ir.Value:
        """Appends an operand."""
        self.function.inputs.append(ir.Value(name=name))
        return self.function.inputs[-1]

    def add(self, op_type: str, *inputs: ir.Value, **attributes: float) -> ir.Value:
        """Appends a node and returns its result."""
        node = ir.Node("", op_type, inputs, ir.convenience.convert_attributes(attributes))
        node.outputs[0].name = f"tail_{len(self.function)}"
        self.function.append(node)
        return node.outputs[0]

    def number(self, value: float) -> ir.Value:
        """Appends a constant."""
        return self.add("Constant", value_float=value)


def _activated(body: _Body, x: ir.Value, activation: Activation) -> ir.Value:
    if activation is Activation.NONE:
        return x
    if activation is Activation.SILU:
        return body.add("Mul", x, body.add("Sigmoid", x))
    if activation is Activation.GELU:
        inner = body.add("Erf", body.add("Div", x, body.number(math.sqrt(2))))
    else:
        cube = body.add("Pow", x, body.number(3.0))
        inner = body.add("Add", x, body.add("Mul", body.number(0.044715), cube))
        inner = body.add("Tanh", body.add("Mul", body.number(math.sqrt(2 / math.pi)), inner))
    half = body.add("Mul", body.number(0.5), x)
    return body.add("Mul", half, body.add("Add", body.number(1.0), inner))
