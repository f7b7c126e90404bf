"""The graphs of a bundle that are built into engines, each with the outputs that sessions ask of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from retouch.bundle import Bundle, EditGraphSpec, prepared_groups, read_shared, relocate
from retouch.engines.ort import prune_file
from retouch.errors import BuildRequestError

__all__ = ["BuildGraph", "LoadedGraph", "graphs_of", "load_graph"]


@dataclass(frozen=True)
class BuildGraph:
    """A graph to build.

    Attributes:
        file: its file in the bundle.
        outputs: the outputs that the engine computes.
        edit: how the manifest describes it, if it is an edit graph.
    """

    file: str
    outputs: tuple[str, ...]
    edit: EditGraphSpec | None = None


@dataclass(frozen=True)
class LoadedGraph:
    """A graph in memory, cut down to its outputs; its weights stay on disk.

    Attributes:
        model: the graph.
        folder: where its weights are.
        digest: of all that it is made of, weights included.
    """

    model: onnx.ModelProto
    folder: Path
    digest: str


def graphs_of(bundle: Bundle, modes: Sequence[str]) -> list[BuildGraph]:
    """The graphs that edits with these GroupNorm modes run, the base graph first.

    Raises:
        BuildRequestError: the bundle has no edit graph of a mode.
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
    kept = dict.fromkeys(item for spec in edits for item in (*spec.cached, *spec.prep_cached))
    found = [BuildGraph(manifest.base_file, (*own, *(f"cacheable.{item}" for item in kept)))]
    for spec in edits:
        if spec.prep_file is not None:
            groups = prepared_groups(bundle.path / spec.prep_file)
            found += [BuildGraph(spec.prep_file, group.outputs) for group in groups]
        found.append(BuildGraph(spec.file, (*own, *(f"update.{item}" for item in spec.updates)), spec))
    return found


def load_graph(bundle: Bundle, graph: BuildGraph) -> LoadedGraph:
    """The graph, cut down to its outputs."""
    model = prune_file(bundle.path / graph.file, graph.outputs)
    digest = hashlib.sha256(model.SerializeToString(deterministic=True))
    digest.update(bundle.manifest.files[bundle.manifest.weights_file].sha256.encode())
    shared = read_shared(bundle.path)
    if shared is not None:
        digest.update(shared.sha256.encode())
    folder = relocate(model, bundle.path)
    return LoadedGraph(model, folder, digest.hexdigest())
