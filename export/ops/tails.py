"""Tails: what is done to the rows of a product while they are at hand, as part of the operator's name.

``EditConvAddedAffineSilu`` is EditConv, then s = rows + residual, then silu(s * factor + shift). The operators of a
tail's name stand in this order, each with its operands behind those of the product:

- ``Gated``: times ``gate`` [C],
- ``Added``: plus ``residual`` [M, C],
- ``Kept``: what there is at this point is a second result,
- ``Affine``: times ``factor`` [C], plus ``shift`` [C],
- ``Silu``, ``Gelu`` or ``TanhGelu``.

``Rows...`` is a tail by itself, of rows that no product made.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import onnx
from onnx import helper

__all__ = ["NORM", "PRODUCTS", "ROWS", "Activation", "Tail", "with_tail"]

PRODUCTS = ("EditConv", "RowLinear")
NORM = "EditGroupNorm"
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


def with_tail(base: onnx.FunctionProto, tail: Tail) -> onnx.FunctionProto:
    """A product's function, or that of rows as they are, with a tail behind it."""
    made = onnx.FunctionProto()
    made.CopyFrom(base)
    made.name = base.name + tail.name
    last, *others = made.output
    del made.output[:]
    body = _Body(made)
    if tail.gated:
        last = body.add("Mul", last, body.operand("gate"))
    if tail.added:
        last = body.add("Add", last, body.operand("residual"))
    total = last
    if tail.affine:
        last = body.add("Add", body.add("Mul", last, body.operand("factor")), body.operand("shift"))
    last = _activated(body, last, tail.activation)
    made.output.extend([last, *([total] if tail.kept else []), *others])
    return made


@dataclass(frozen=True)
class _Body:
    """The nodes of a function."""

    function: onnx.FunctionProto

    def operand(self, name: str) -> str:
        """Appends an operand."""
        self.function.input.append(name)
        return name

    def add(self, op_type: str, *inputs: str) -> str:
        """Appends a node and returns its result."""
        result = f"tail_{len(self.function.node)}"
        self.function.node.append(helper.make_node(op_type, list(inputs), [result]))
        return result

    def number(self, value: float) -> str:
        """Appends a constant."""
        result = f"tail_{len(self.function.node)}"
        self.function.node.append(helper.make_node("Constant", [], [result], value_float=value))
        return result


def _activated(body: _Body, x: str, activation: Activation) -> str:
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
