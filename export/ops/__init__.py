"""The ``ai.retouch`` operators: model-local functions whose bodies are standard ONNX operators.

A stock runtime inlines the bodies; a runtime with kernels for the domain replaces the nodes.
"""

from __future__ import annotations

import onnx_ir as ir

from retouch.export.ops.edit_conv import EditConv
from retouch.export.ops.gather_rows import GatherRows
from retouch.export.ops.masked_merge import MaskedMerge
from retouch.export.ops.row_linear import RowLinear

__all__ = ["EditConv", "GatherRows", "MaskedMerge", "RowLinear", "functions"]


def functions(opset: int) -> list[ir.Function]:
    """Fresh copies of all operators' functions, importing an ONNX opset."""
    made = []
    for definition in (MaskedMerge, GatherRows, EditConv, RowLinear):
        function = ir.serde.deserialize_function(definition.to_function_proto())
        function.opset_imports.clear()
        function.opset_imports[""] = opset
        made.append(function)
    return made
