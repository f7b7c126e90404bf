"""The full model as an action to time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from retouch.engines import Engine


def open_full_model(
    engine: Engine, graph: Path, outputs: Sequence[str] | None, feeds: Mapping[str, NDArray[Any]]
) -> Callable[[], object]:
    """A run of a graph on those feeds, up to its outputs in host memory, and nothing else.

    Args:
        engine: the engine.
        graph: the graph's file.
        outputs: the outputs to compute; ``None`` means all of them.
        feeds: the inputs.
    """
    program = engine.open(graph, outputs)
    values = {name: engine.value(array) for name, array in feeds.items()}
    return lambda: [value.numpy() for value in program.run(values).values()]
