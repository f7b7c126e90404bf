"""The graphs of a bundle that are built into engines, each with the outputs that sessions ask of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from retouch.bundle import Bundle, EditGraphSpec, prepared_groups, read_shared, relocate
from retouch.engines.ort import prune_file
from retouch.errors import BuildRequestError
from retouch.trt_plugins._open_batch import OpenGraph, with_open_batch

__all__ = ["BuildGraph", "LoadedGraph", "graphs_of", "load_graph"]

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
_MOST_NUMBERS = 5
"""Constants of so many numbers may decide what a network looks like, as the scales of Resize do."""


@dataclass(frozen=True)
class BuildGraph:
    """A graph to build.

    Attributes:
        file: its file in the bundle.
        outputs: the outputs that the engine computes.
        edit: how the manifest describes it, if it is an edit graph.
        stacked: whether it computes several edits at once.
    """

    file: str
    outputs: tuple[str, ...]
    edit: EditGraphSpec | None = None
    stacked: bool = False


@dataclass(frozen=True)
class LoadedGraph:
    """A graph in memory, cut down to its outputs; its weights stay on disk.

    Attributes:
        model: the graph.
        folder: where its weights are.
        structure: digest of the graph without its weights: what they are, not what is in them.
        digest: of all that it is made of, weights included.
        batch: the batch that it was exported for, if that is open now.
        batch_axes: the axes that count an open batch, of the inputs and outputs that have some.
        single: outputs that are of one sample whatever the batch, and the axes that count it.
    """

    model: onnx.ModelProto
    folder: Path
    structure: str
    digest: str
    batch: int | None = None
    batch_axes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    single: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def graphs_of(bundle: Bundle, modes: Sequence[str], *, stacked: bool = False) -> list[BuildGraph]:
    """The graphs that edits with these GroupNorm modes run, the base graph first; on demand those of stacks, too.

    Raises:
        BuildRequestError: the bundle has no edit graph of a mode, or none of stacks.
    """
    manifest = bundle.manifest
    unknown = [mode for mode in modes if mode not in manifest.edits]
    if unknown or not modes:
        raise BuildRequestError(
            f"Expected GroupNorm modes among {', '.join(manifest.edits)}, which the bundle has, got "
            f"{', '.join(unknown) or 'none'}."
        )
    own = tuple(output.tensor.name for output in manifest.outputs)
    edits = [manifest.edits[mode] for mode in modes]
    stacks = [_stack(bundle, mode) for mode in modes] if stacked else []
    kept = dict.fromkeys(item for spec in (*edits, *stacks) for item in _read(spec))
    found = [BuildGraph(manifest.base_file, (*own, *(f"cacheable.{item}" for item in kept)))]
    for spec in edits:
        found += _preparing(bundle, spec)
        found.append(BuildGraph(spec.file, (*own, *(f"update.{item}" for item in spec.updates)), spec))
    for stack in stacks:
        found += [graph for graph in _preparing(bundle, stack) if graph not in found]
        found.append(BuildGraph(stack.file, own, stack, stacked=True))
    return found


def _stack(bundle: Bundle, mode: str) -> EditGraphSpec:
    stack = bundle.manifest.stacked[mode]
    if stack.graph is None:
        raise BuildRequestError(
            f"Expected the bundle to have a stacked graph for {mode} moments, but it has none: {stack.reason}. Build "
            "without stacks; sessions run edits one by one then."
        )
    return stack.graph


def _read(spec: EditGraphSpec) -> tuple[str, ...]:
    return (*spec.cached, *spec.prep_cached)


def _preparing(bundle: Bundle, spec: EditGraphSpec) -> list[BuildGraph]:
    """The graphs that prepare its inputs, one for each group that becomes stale together."""
    if spec.prep_file is None:
        return []
    return [BuildGraph(spec.prep_file, group.outputs) for group in prepared_groups(bundle.path / spec.prep_file)]


def load_graph(
    bundle: Bundle,
    graph: BuildGraph,
    other: Bundle | None = None,
    single: Mapping[str, tuple[int, ...]] | None = None,
) -> LoadedGraph:
    """The graph, cut down to its outputs.

    Args:
        bundle: the bundle that has it.
        graph: the graph.
        other: a bundle of the same model for another batch, to have the batch open.
        single: inputs that graphs give for one sample, and the axes that count it.

    Raises:
        BuildRequestError: the other bundle is none of this model.
    """
    model = prune_file(bundle.path / graph.file, graph.outputs)
    opened = OpenGraph(model, {}, None, {})
    if other is not None:
        opened = with_open_batch(model, _of_other(other, graph), single)
        model = opened.model
    digest = hashlib.sha256(model.SerializeToString(deterministic=True))
    structure = _structure(model)
    digest.update(bundle.manifest.files[bundle.manifest.weights_file].sha256.encode())
    shared = read_shared(bundle.path)
    if shared is not None:
        digest.update(shared.sha256.encode())
    folder = relocate(model, bundle.path)
    return LoadedGraph(model, folder, structure, digest.hexdigest(), opened.size, opened.axes, opened.single)


def _of_other(other: Bundle, graph: BuildGraph) -> onnx.ModelProto:
    names = onnx.load(other.path / graph.file, load_external_data=False) if graph.file in other.manifest.files else None
    if names is None or not {*graph.outputs} <= {value.name for value in names.graph.output}:
        raise BuildRequestError(
            f"Expected {other.path} to be of the same model for another batch, but it has no {graph.file} with the "
            "same outputs. Export both with the same options, for batches of two or more."
        )
    return prune_file(other.path / graph.file, graph.outputs)


def _structure(model: onnx.ModelProto) -> str:
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for tensor in bare.graph.initializer:
        if tensor.data_type in _FLOATS and (tensor.external_data or math.prod(tensor.dims) > _MOST_NUMBERS):
            kept = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
            tensor.CopyFrom(kept)
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).hexdigest()
