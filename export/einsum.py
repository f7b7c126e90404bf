"""Reading the equation of an Einsum node."""

from __future__ import annotations

import string
from dataclasses import dataclass

import onnx_ir as ir

from retouch.export.model_shapes import attribute, shape_of

__all__ = ["Equation", "equation_of"]

_ELLIPSIS = "..."


@dataclass(frozen=True)
class Equation:
    """One label per axis of every operand and of the result."""

    terms: tuple[str, ...]
    result: str


def equation_of(node: ir.Node) -> Equation:
    """The equation with its ellipses written out, and its result too where it is implied."""
    text = str(attribute(node, "equation")).replace(" ", "")
    operands, arrow, result = text.partition("->")
    terms = operands.split(",")
    if not arrow:
        result = _implied(terms)
    unused = [label for label in string.ascii_letters if label not in text]
    hidden = [
        len(shape_of(value)) - len(term) + len(_ELLIPSIS) if _ELLIPSIS in term else 0
        for term, value in zip(terms, node.inputs, strict=True)
    ]
    most = unused[: max(hidden)]
    written = [
        term.replace(_ELLIPSIS, "".join(most[len(most) - count :])) for term, count in zip(terms, hidden, strict=True)
    ]
    return Equation(tuple(written), result.replace(_ELLIPSIS, "".join(most)))


def _implied(terms: list[str]) -> str:
    """The labels that appear once, in the alphabet's order, behind an ellipsis."""
    labels = "".join(terms).replace(_ELLIPSIS, "")
    once = "".join(sorted(label for label in labels if labels.count(label) == 1))
    return (_ELLIPSIS if any(_ELLIPSIS in term for term in terms) else "") + once
