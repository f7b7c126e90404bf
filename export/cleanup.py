"""Clean-up: static shapes everywhere, constants folded, every value named."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir
import onnxscript.optimizer
from onnx_ir.passes import common as passes
from onnxscript.rewriter import RewritePass
from onnxscript.rewriter.rules.common import (
    fuse_pad_into_conv_rule,
    normalize_pad_format_conv_rule,
)

from retouch.errors import ModelError
from retouch.export.decompose import decompose
from retouch.export.group_normalization import split_group_normalization
from retouch.export.misfit import check_memory, sized, skip_advice
from retouch.export.model_shapes import constant

__all__ = ["clean_up"]

_FOLDED_ELEMENTS = 4096
_BATCH = "batch"


def clean_up(model: ir.Model, fix: Mapping[str, int]) -> list[str]:
    """Changes a model in place; returns what was done, in words.

    Args:
        model: the model.
        fix: sizes for symbolic dims by name; ``batch`` also names a leading dim of any other name or of none, which
            becomes 1 if it is not mentioned.

    Requires: opset 18 or later.
    Ensures: every value has a name, an element type and a static shape; there are no Constant nodes, local functions
        or control flow.

    Raises:
        ModelError: a dim other than the leading one stays open, sizes do not meet, or the graph has control flow.
        ExportError: the sizes need more memory than there is.
    """
    done = [] if not model.functions else [f"inlined {len(model.functions)} local functions"]
    passes.InlinePass()(model)
    done += _bind_dims(model.graph, fix)
    before = model.graph.num_nodes()
    fused = decompose(model)
    done += [f"took {fused} fused operators apart"] if fused else []
    split_group_normalization(model)
    _forget_shapes(model.graph)
    onnxscript.optimizer.optimize_ir(model, should_fold=_folds)
    RewritePass([fuse_pad_into_conv_rule, normalize_pad_format_conv_rule])(model)
    # Exporters leave stack traces there, with the paths of the machine they ran on.
    passes.ClearMetadataAndDocStringPass()(model)
    passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    passes.RemoveUnusedNodesPass()(model)
    _infer_shapes(model)
    done.append(f"folded {before} nodes to {model.graph.num_nodes()}")
    _refuse_control_flow(model.graph)
    passes.NameFixPass()(model)
    _check_shapes(model.graph, fix)
    check_memory(sized(model.graph), fix)
    return done


def _bind_dims(graph: ir.Graph, fix: Mapping[str, int]) -> list[str]:
    done, unused = [], set(fix)
    open_dims = {d.value or "" for v in graph.inputs if v.shape for d in v.shape if not isinstance(d, int)}
    for value in graph.inputs:
        dtype = value.dtype if isinstance(value.type, ir.TensorType) else None
        if dtype is None or not (dtype.is_floating_point() or dtype.is_integer() or dtype == ir.DataType.BOOL):
            raise ModelError(
                f"The input {value.name!r} is of type {value.type}, expected a tensor of numbers or truth values. "
                "Export the model with such inputs only."
            )
        if value.shape is None:
            raise ModelError(f"The input {value.name!r} has no shape. Export the model with shaped inputs.")
        dims: list[int] = []
        for axis, dim in enumerate(value.shape):
            if isinstance(dim, int):
                dims.append(dim)
                continue
            name = dim.value
            unused.discard(name or "")
            if name is not None and name in fix:
                dims.append(fix[name])
            elif axis == 0:
                unused.discard(_BATCH)
                dims.append(fix.get(_BATCH, 1))
            else:
                raise ModelError(
                    f"The input {value.name!r} leaves axis {axis} open (dim {name!r}, shape {value.shape}). "
                    f"An edit graph is made for one size: pass it, for example --fix {name or 'NAME'}=64."
                )
            done.append(f"bound dim {name!r} of input {value.name!r} to {dims[-1]}")
        if min(dims, default=1) < 1:
            raise ModelError(
                f"The input {value.name!r} has no elements (shape {dims}). Give every dim a positive size."
            )
        value.shape = ir.Shape(dims)
    if unused:
        raise ModelError(
            f"--fix names {sorted(unused)}, but the model's inputs have no such open dims (open: {sorted(open_dims)})."
        )
    return list(dict.fromkeys(done))


def _folds(node: ir.Node) -> bool | None:
    """Whether to fold a node of constants; the optimiser keeps ConstantOfShape, and shapes computed from it open."""
    if node.op_type != "ConstantOfShape":
        return None
    sizes = constant(node.inputs[0])
    return True if sizes is not None and int(np.prod(sizes)) <= _FOLDED_ELEMENTS else None


def _forget_shapes(graph: ir.Graph) -> None:
    """Drops inferred shapes, which may still speak of symbolic dims; what only the file can tell stays."""
    for node in graph:
        for value in node.outputs:
            if not (_is_foreign(node) and _is_static(value)):
                value.shape = None


def _is_foreign(node: ir.Node) -> bool:
    """Whether ONNX does not define the operator."""
    return node.domain not in ("", "ai.onnx") or not onnx.defs.has(node.op_type)


def _is_static(value: ir.Value) -> bool:
    return value.shape is not None and all(isinstance(dim, int) for dim in value.shape)


def _refuse_control_flow(graph: ir.Graph) -> None:
    for node in graph:
        if any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values()):
            raise ModelError(
                f"The node {node.name!r} ({node.op_type}) holds a subgraph whose branch is not known at export. "
                "Export the model without control flow (fixed shapes, no data-dependent branches)."
            )


def _infer_shapes(model: ir.Model) -> None:
    logger = logging.getLogger("onnx_ir")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # what does not fit is explained below
    try:
        passes.ShapeInferencePass(data_prop=True)(model)
    finally:
        logger.setLevel(level)


def _check_shapes(graph: ir.Graph, fix: Mapping[str, int]) -> None:
    for node in graph:
        for value in node.outputs:
            if _is_static(value) and value.dtype is not None:
                continue
            what = f"The shape of {value.name!r}, output of {node.op_type} node {node.name!r}, is not known"
            if _is_foreign(node):
                raise ModelError(
                    f"{what}: ONNX does not define the operator {node.domain or 'ai.onnx'}.{node.op_type}. Let the "
                    "file tell element type and static shape of its outputs (value_info), or replace the operator."
                )
            advice = skip_advice(graph, node, fix)
            if advice is not None:
                raise ModelError(advice)
            raise ModelError(
                f"{what} after shape inference (got {value.shape}). Fix open dims with --fix NAME=SIZE, or export with "
                "static shapes."
            )
