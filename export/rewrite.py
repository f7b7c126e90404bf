"""Rewrites an analysed graph into an edit graph and, where something can be prepared, a prep graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir
from onnx_ir.passes import common as passes

from retouch.bundle import EditGraphSpec, NeighbourhoodSpec, TensorSpec
from retouch.export.analysis import Analysis
from retouch.export.binding_time import split_by_binding_time
from retouch.export.edit_inputs import Cacheable
from retouch.export.emit import EditGraph
from retouch.export.fusions import fuse
from retouch.export.lattice import Beside, Invariant, Statistic
from retouch.export.model_shapes import dtype_of, shape_of
from retouch.export.node_builder import BindingTime
from retouch.export.ops import DOMAIN, add_functions
from retouch.export.peepholes import apply_peepholes
from retouch.export.rules import rule_for
from retouch.export.rules.group_norm import emit_whole
from retouch.export.stack import StackedGraph, StackError

__all__ = ["EditModels", "rewrite", "rewrite_stacked"]

_IR_VERSION = 10
_CORRECTED = "_corrected"
_OUTPUT_MARK = "output of edit: "


@dataclass(frozen=True)
class EditModels:
    """One edit graph, its prep graph, and what they need from the base run and the host."""

    edit: ir.Model
    prep: ir.Model | None
    spec: EditGraphSpec
    cacheables: dict[str, Cacheable]
    neighbourhoods: dict[str, NeighbourhoodSpec]


def rewrite(model: ir.Model, analysis: Analysis, *, corrected_moments: bool) -> EditModels:
    """The edit graph of an analysed model.

    Args:
        model: the cleaned-up, canonical model.
        analysis: its analysis.
        corrected_moments: see ``EditGraph``.

    Ensures: outputs are full size; their inactive rows are copied from the cached output.
    """
    builder = EditGraph(analysis.facts, corrected_moments=corrected_moments)
    return _rewritten(model, analysis, builder, _CORRECTED if corrected_moments else "")


def rewrite_stacked(model: ir.Model, analysis: Analysis, *, corrected_moments: bool) -> EditModels | str:
    """The stacked edit graph of an analysed model, or why it has none.

    Args:
        model: the cleaned-up, canonical model.
        analysis: its analysis.
        corrected_moments: see ``EditGraph``.

    Ensures: the editable input and the outputs are active rows only; there are no updates.
    """
    try:
        builder = StackedGraph(analysis.facts, corrected_moments=corrected_moments)
        return _rewritten(model, analysis, builder, f"_stacked{_CORRECTED if corrected_moments else ''}")
    except StackError as reason:
        return str(reason)


def _rewritten(model: ir.Model, analysis: Analysis, builder: EditGraph, suffix: str) -> EditModels:
    _emit(model.graph, analysis, builder)
    outputs = [builder.output(value) for value in model.graph.outputs]
    live = _cached_ids(builder, outputs)
    keys = [key for key in live if key in builder.updates and not isinstance(builder, StackedGraph)]
    simplified = apply_peepholes(builder, [*outputs, *(builder.updates[key] for key in keys)])
    outputs = simplified[: len(outputs)]
    builder.updates = dict(zip(keys, simplified[len(outputs) :], strict=True))
    return _assemble(model, builder, outputs, suffix)


def _emit(graph: ir.Graph, analysis: Analysis, builder: EditGraph) -> None:
    source = next(value for value in graph.inputs if value.name == analysis.editable.origin)
    builder.open_editable(source)
    for node in graph:
        known = [analysis.facts.of(value) for value in node.inputs]
        if all(isinstance(fact, Invariant | Beside | Statistic) for fact in known):
            if not any(isinstance(fact, Beside) and fact.frozen for fact in known):
                _emit_whole(node, builder)
        elif node in analysis.refusals:
            _emit_whole(node, builder)
            for value in node.outputs:
                rows = analysis.facts.rows(value)
                if rows is not None:
                    builder.gather_whole(value, builder.take_whole(value), rows)
        else:
            rule = rule_for(node)
            assert rule is not None
            builder.enter(node)
            rule.emit(node, builder)


def _emit_whole(node: ir.Node, builder: EditGraph) -> None:
    if node.domain == DOMAIN:
        emit_whole(node, builder)
        return
    made = builder.clone(node, [builder.whole(value) for value in node.inputs])
    for value, emitted in zip(node.outputs, made, strict=True):
        builder.set_whole(value, emitted)


def _assemble(model: ir.Model, builder: EditGraph, outputs: list[ir.Value], suffix: str) -> EditModels:
    updates = builder.updates
    split = split_by_binding_time(builder, [*outputs, *updates.values()])
    prep = (
        _model("prep", split.prep, builder, split.prepared, _prepared_names(split.prepared), model.opset_imports)
        if split.prep
        else None
    )
    if prep is not None:
        passes.ShapeInferencePass()(prep)
    prepared = _prepared_specs(prep)
    for value, spec in zip(split.prepared, prepared, strict=True):
        value.type = ir.TensorType(_element_type(spec.dtype))
        value.shape = ir.Shape(spec.shape)
    names = [str(value.name) for value in model.graph.outputs] + [f"update.{key}" for key in updates]
    results = [*outputs, *updates.values()]
    edit = _model("edit", split.edit, builder, results, names, model.opset_imports, split.prepared)
    fuse(edit)
    add_functions(edit)
    _type_outputs(edit, model, builder)
    graph_spec = _spec(edit, prep, prepared, builder, tuple(updates), suffix)
    used = {key: builder.cacheables[key] for key in (*graph_spec.cached, *graph_spec.prep_cached)}
    found = {key: builder.neighbourhoods[key] for key in graph_spec.neighbourhoods}
    return EditModels(edit, prep, graph_spec, used, found)


def _element_type(name: str) -> ir.DataType:
    """The element type of a numpy dtype name."""
    return next(dtype for dtype in ir.DataType if dtype.name != "UNDEFINED" and _numpy_name(dtype) == name)


def _numpy_name(dtype: ir.DataType) -> str | None:
    try:
        return str(dtype.numpy().name)
    except TypeError:
        return None


def _cached_ids(builder: EditGraph, outputs: Sequence[ir.Value]) -> list[str]:
    """Ids of the cacheables that the outputs depend on."""
    needed = set(outputs)
    for node in reversed(builder.nodes):
        if any(value in needed for value in node.outputs):
            needed.update(value for value in node.inputs if value is not None)
    names = {value.name for value in builder.inputs if value in needed}
    return [key for key in builder.cacheables if f"cached.{key}" in names]


def _prepared_names(prepared: Iterable[ir.Value]) -> list[str]:
    return [f"prepared.{value.name}" for value in prepared]


def _prepared_specs(prep: ir.Model | None) -> tuple[TensorSpec, ...]:
    if prep is None:
        return ()
    return tuple(TensorSpec(str(v.name), dtype_of(v).numpy().name, shape_of(v)) for v in prep.graph.outputs)


def _model(
    name: str,
    nodes: list[ir.Node],
    builder: EditGraph,
    outputs: Sequence[ir.Value],
    output_names: Sequence[str],
    opsets: Mapping[str, int],
    prepared: Sequence[ir.Value] = (),
) -> ir.Model:
    """A model of copies of some nodes; values that are prepared elsewhere become inputs."""
    copies: dict[ir.Value, ir.Value] = {}
    inputs: list[ir.Value] = []
    initializers: list[ir.Value] = []
    used = {value for node in nodes for value in node.inputs if value is not None} | set(outputs)
    for value in builder.inputs:
        if value in used:
            copies[value] = ir.Value(name=value.name, type=value.type, shape=value.shape)
            inputs.append(copies[value])
    for value in prepared:
        copies[value] = ir.Value(name=f"prepared.{value.name}", type=value.type, shape=value.shape)
        inputs.append(copies[value])
    for value in builder.initializers.values():
        if value in used:
            copies[value] = ir.Value(name=value.name, type=value.type, shape=value.shape, const_value=value.const_value)
            initializers.append(copies[value])
    made = [_copy(node, copies) for node in nodes]
    results = [_named(copies[value], name, made) for value, name in zip(outputs, output_names, strict=True)]
    domains, opset = {node.domain for node in made}, opsets.get("", 18)
    imports = {"": opset, **{domain: version for domain, version in opsets.items() if domain in domains}}
    graph = ir.Graph(inputs, results, nodes=made, initializers=initializers, opset_imports=imports, name=name)
    for value in results:
        value.name = str(value.name).removeprefix(_OUTPUT_MARK)
    model = ir.Model(graph, ir_version=_IR_VERSION, producer_name="retouch")
    add_functions(model)
    return model


def _named(value: ir.Value, name: str, nodes: list[ir.Node]) -> ir.Value:
    """The value under an output's name; a copy of it where it is an input, a weight or an output already."""
    if value.producer() is None or str(value.name).startswith(_OUTPUT_MARK):
        node = ir.Node("", "Identity", [value], name=f"output_{name}")
        nodes.append(node)
        value = node.outputs[0]
    value.name = f"{_OUTPUT_MARK}{name}"
    return value


def _copy(node: ir.Node, copies: dict[ir.Value, ir.Value]) -> ir.Node:
    inputs = [None if value is None else copies[value] for value in node.inputs]
    made = ir.Node(
        node.domain, node.op_type, inputs, list(node.attributes.values()), num_outputs=len(node.outputs), name=node.name
    )
    for old, new in zip(node.outputs, made.outputs, strict=True):
        new.name, new.type, new.shape = old.name, old.type, old.shape
        copies[old] = new
    return made


def _type_outputs(edit: ir.Model, model: ir.Model, builder: EditGraph) -> None:
    originals = {value.name: value for value in model.graph.outputs}
    for value in edit.graph.outputs:
        if value.name in originals:
            value.type = originals[value.name].type
            value.shape = builder.output_shape(originals[value.name])
            continue
        cached = builder.cacheables[str(value.name).removeprefix("update.")].spec
        value.type = ir.TensorType(_element_type(cached.dtype))
        dims: list[int | str] = list(cached.shape)
        if cached.row_axis is not None:
            dims[cached.row_axis] = f"M_{cached.grid}"
        value.shape = ir.Shape(dims)


def _spec(
    edit: ir.Model,
    prep: ir.Model | None,
    prepared: tuple[TensorSpec, ...],
    builder: EditGraph,
    updates: tuple[str, ...],
    suffix: str,
) -> EditGraphSpec:
    edit_names = [str(value.name) for value in edit.graph.inputs]
    prep_names = [str(value.name) for value in prep.graph.inputs] if prep is not None else []
    both = dict.fromkeys((*prep_names, *edit_names))

    def with_prefix(names: Iterable[str], prefix: str) -> tuple[str, ...]:
        return tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))

    conditions = tuple(v.name for v in builder.inputs if builder.time[v] is BindingTime.CONDITION and v.name in both)
    nids = dict.fromkeys((*with_prefix(edit_names, "neighbours."), *with_prefix(edit_names, "halo.")))
    return EditGraphSpec(
        file=f"edit{suffix}.onnx",
        prep_file=f"prep{suffix}.onnx" if prep is not None else None,
        conditions=tuple(str(name) for name in conditions),
        cached=with_prefix(edit_names, "cached."),
        prep_cached=with_prefix(prep_names, "cached."),
        prepared=prepared,
        grids=with_prefix(edit_names, "rows."),
        neighbourhoods=tuple(nids),
        updates=updates,
        masks=with_prefix(edit_names, "mask."),
        blocks=with_prefix(edit_names, "members."),
        owners=with_prefix(edit_names, "owners."),
    )
