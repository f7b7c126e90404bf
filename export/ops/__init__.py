"""The ``ai.retouch`` operators: model-local functions whose bodies are standard ONNX operators.

A stock runtime inlines the bodies; a runtime with kernels for the domain replaces the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import onnx
import onnx_ir as ir

from retouch.export.ops._domain import DOMAIN
from retouch.export.ops.edit_attention import EditAttention
from retouch.export.ops.edit_conv import EditConv
from retouch.export.ops.edit_group_norm import EditGroupNorm
from retouch.export.ops.gather_rows import GatherRows
from retouch.export.ops.masked_merge import MaskedMerge
from retouch.export.ops.row_linear import RowLinear
from retouch.export.ops.tails import ROWS, Activation, Tail, with_tail

__all__ = [
    "Activation",
    "EditAttention",
    "EditConv",
    "EditGroupNorm",
    "GatherRows",
    "MaskedMerge",
    "RowLinear",
    "Tail",
    "functions",
]


def functions(opset: int, names: Iterable[str] | None = None) -> list[ir.Function]:
    """Fresh copies of the operators' functions of those names, or of all, importing an ONNX opset."""
    definitions = _definitions()
    made = []
    for name in definitions if names is None else names:
        function = ir.serde.deserialize_function(definitions[name])
        function.opset_imports.clear()
        function.opset_imports[""] = opset
        made.append(function)
    return made


@cache
def _definitions() -> dict[str, onnx.FunctionProto]:
    """The functions by name."""
    scripts = (MaskedMerge, GatherRows, EditConv, RowLinear, EditAttention, EditGroupNorm)
    found = {script.name: script.to_function_proto() for script in scripts}
    rows = onnx.FunctionProto(domain=DOMAIN, name=ROWS, input=["rows"], output=["rows"])
    _, *tails = Tail.all()
    for base in (found["EditConv"], found["RowLinear"]):
        found |= {base.name + tail.name: with_tail(base, tail) for tail in tails}
    norm = found["EditGroupNorm"]
    found |= {norm.name + tail.name: with_tail(norm, tail) for tail in tails if tail.only_maps}
    # Rows that are an operand already are not kept.
    found |= {ROWS + tail.name: with_tail(rows, tail) for tail in tails if tail.gated or tail.added or not tail.kept}
    return found
