"""The first value of a full run that holds NaN or infinity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray

from retouch.bundle import Bundle
from retouch.engines import Value
from retouch.engines.ort import OrtEngine, Provider
from retouch.session import checked_feeds

_AT_ONCE = 64
"""So many values are kept at a time: more would take the memory of a whole run's activations."""


@dataclass(frozen=True)
class NonFinite:
    """A value that is not finite, with what it was computed from.

    Attributes:
        value: its name; an input's own name if a feed is not finite.
        node: the node that computes it, empty for a feed.
        op: the node's operator, empty for a feed.
        nan: number of NaN elements.
        infinite: number of infinite elements.
        size: number of elements.
        reads: per operand that a run computes, its smallest and largest element.
    """

    value: str
    node: str
    op: str
    nan: int
    infinite: int
    size: int
    reads: Mapping[str, tuple[float, float]]


def first_non_finite(
    bundle: Bundle | str | Path,
    feeds: Mapping[str, ArrayLike],
    *,
    providers: Sequence[Provider] | None = None,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> NonFinite | None:
    """The first value in the base graph's order that is not finite, ``None`` if all are.

    The graph runs once per group of values, so it takes as long as some dozens of full runs.

    Args:
        bundle: the bundle, or its directory.
        feeds: one array per input of the model.
        providers: execution providers by preference; ``None`` means the CPU.
        threads: threads per run; ``None`` leaves the choice to the engine.
        progress: called with the share that is done.

    Raises:
        FeedError: a feed is missing, unknown, or does not fit.
    """
    opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
    checked = checked_feeds(opened.manifest.inputs, feeds)
    for name, array in checked.items():
        if _is_float(array) and not np.isfinite(array).all():
            return _described(name, "", "", array, {})
    engine = OrtEngine(providers, threads)
    graph = onnx.load(opened.path / opened.manifest.base_file, load_external_data=False).graph
    values = {name: engine.value(array) for name, array in checked.items()}
    nodes = list(_own_nodes(graph, [output.tensor.name for output in opened.manifest.outputs]))
    for start in range(0, len(nodes), _AT_ONCE):
        found = _search(engine, opened, nodes[start : start + _AT_ONCE], values)
        if found is not None:
            return found
        if progress is not None:
            progress(min(1.0, (start + _AT_ONCE) / len(nodes)))
    return None


def _own_nodes(graph: onnx.GraphProto, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
    """The nodes of the model itself, without those that only bring cacheables into shape."""
    needed = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed.update(node.input)
    return reversed(kept)


def _search(
    engine: OrtEngine, bundle: Bundle, nodes: Sequence[onnx.NodeProto], feeds: Mapping[str, Value]
) -> NonFinite | None:
    names = [name for node in nodes for name in node.output if name]
    computed = _run(engine, bundle, names, feeds)
    for node in nodes:
        for name in filter(None, node.output):
            array = computed[name]
            if _is_float(array) and not np.isfinite(array).all():
                return _described(name, node.name, node.op_type, array, _reads(engine, bundle, node, feeds))
    return None


def _run(
    engine: OrtEngine, bundle: Bundle, names: Sequence[str], feeds: Mapping[str, Value]
) -> dict[str, NDArray[Any]]:
    program = engine.open(bundle.path / bundle.manifest.base_file, names)
    return {name: value.numpy() for name, value in program.run(feeds).items()}


def _reads(
    engine: OrtEngine, bundle: Bundle, node: onnx.NodeProto, feeds: Mapping[str, Value]
) -> dict[str, tuple[float, float]]:
    """The range of every operand that is computed or fed."""
    graph = onnx.load(bundle.path / bundle.manifest.base_file, load_external_data=False).graph
    made = {name for other in graph.node for name in other.output}
    operands = {name: feeds[name].numpy() for name in node.input if name in feeds}
    operands.update(_run(engine, bundle, [name for name in dict.fromkeys(node.input) if name in made], feeds))
    return {name: (float(array.min()), float(array.max())) for name, array in operands.items() if array.size}


def _described(
    value: str, node: str, op: str, array: NDArray[Any], reads: Mapping[str, tuple[float, float]]
) -> NonFinite:
    return NonFinite(value, node, op, int(np.isnan(array).sum()), int(np.isinf(array).sum()), array.size, reads)


def _is_float(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "f"
