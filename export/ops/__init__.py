"""The ``ai.retouch`` operators: model-local functions whose bodies are standard ONNX operators.

A stock runtime inlines the bodies; a runtime with kernels for the domain replaces the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial

import onnx
import onnx_ir as ir

from retouch.export.ops._domain import DOMAIN, VERSION
from retouch.export.ops.batch_edit_conv import BatchEditConv
from retouch.export.ops.batch_row_linear import BatchRowLinear
from retouch.export.ops.depthwise_edit_conv import DepthwiseEditConv
from retouch.export.ops.edit_attention import EditAttention
from retouch.export.ops.edit_conv import EditConv
from retouch.export.ops.edit_group_norm import EditGroupNorm
from retouch.export.ops.gather_rows import GatherRows
from retouch.export.ops.group_moments import GroupMoments
from retouch.export.ops.grouped_edit_conv import BatchGroupedEditConv, GroupedEditConv
from retouch.export.ops.masked_merge import MaskedMerge
from retouch.export.ops.moment_affine import MomentAffine
from retouch.export.ops.row_linear import RowLinear
from retouch.export.ops.scatter_rows import ScatterRows
from retouch.export.ops.stacked_attention import StackedAttention
from retouch.export.ops.stacked_group_norm import StackedGroupNorm
from retouch.export.ops.tails import BATCH, NORM, PRODUCTS, ROWS, STACKED_NORM, Activation, Tail, with_tail
from retouch.export.ops.token_linear import TokenLinear

__all__ = [
    "DOMAIN",
    "Activation",
    "BatchEditConv",
    "BatchGroupedEditConv",
    "BatchRowLinear",
    "DepthwiseEditConv",
    "EditAttention",
    "EditConv",
    "EditGroupNorm",
    "GatherRows",
    "GroupMoments",
    "GroupedEditConv",
    "MaskedMerge",
    "MomentAffine",
    "RowLinear",
    "ScatterRows",
    "StackedAttention",
    "StackedGroupNorm",
    "Tail",
    "TokenLinear",
    "add_functions",
    "functions",
]


def functions(opset: int, names: Iterable[str] | None = None) -> list[ir.Function]:
    """Fresh copies of the operators' functions of those names, or of all, importing an ONNX opset."""
    makers = _makers()
    made = [makers[name]() for name in (makers if names is None else names)]
    for function in made:
        function.opset_imports.clear()
        function.opset_imports[""] = opset
    return made


def add_functions(model: ir.Model) -> None:
    """Gives a model the functions of the operators of ours that it uses, and no others."""
    used = dict.fromkeys(node.op_type for node in model.graph if node.domain == DOMAIN)
    if used:
        model.graph.opset_imports[DOMAIN] = VERSION
    model.functions.clear()
    for function in functions(model.opset_imports[""], used):
        model.functions[function.identifier()] = function


@cache
def _makers() -> Mapping[str, Callable[[], ir.Function]]:
    """What makes the functions, by name."""
    rowwise = (MaskedMerge, ScatterRows, GatherRows, EditConv, RowLinear, TokenLinear, EditAttention, StackedAttention)
    norms = (EditGroupNorm, StackedGroupNorm, GroupMoments, MomentAffine)
    batches = (BatchEditConv, BatchGroupedEditConv, BatchRowLinear)
    convolutions = (DepthwiseEditConv, GroupedEditConv)
    found: dict[str, Callable[[], ir.Function]] = {
        script.name: partial(_scripted, script.to_function_proto())
        for script in (*rowwise, *norms, *batches, *convolutions)
    }
    for name in (DepthwiseEditConv.name, NORM, STACKED_NORM):
        found[BATCH + name] = partial(_renamed, found[name], BATCH + name)
    _, *tails = Tail.all()
    maps = [tail for tail in tails if tail.only_maps]
    tailed: list[tuple[Callable[[], ir.Function], str, list[Tail]]] = [
        *((found[name], name, tails) for name in PRODUCTS),
        *((found[lead + name], lead + name, maps) for name in (NORM, STACKED_NORM) for lead in ("", BATCH)),
        # Rows that are an operand already are not kept.
        *(
            (partial(_rows, name), name, [tail for tail in tails if tail.gated or tail.added or not tail.kept])
            for name in (ROWS, BATCH + ROWS)
        ),
    ]
    return found | {name + tail.name: partial(_tailed, base, tail) for base, name, behind in tailed for tail in behind}


def _scripted(definition: onnx.FunctionProto) -> ir.Function:
    return ir.serde.deserialize_function(definition)


def _renamed(made: Callable[[], ir.Function], name: str) -> ir.Function:
    function = made()
    function.name = name
    return function


def _rows(name: str) -> ir.Function:
    rows = ir.Value(name="rows")
    return ir.Function(DOMAIN, name, graph=ir.Graph([rows], [rows], nodes=[]), attributes=[])


def _tailed(base: Callable[[], ir.Function], tail: Tail) -> ir.Function:
    return with_tail(base(), tail)
