"""Which prepared inputs depend on the same conditions, read from the graph that computes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx

from retouch.bundle._reads import reads

_CACHED = "cached."


@dataclass(frozen=True)
class PreparedGroup:
    """Outputs of a prep graph that become stale together.

    Attributes:
        outputs: their names.
        conditions: the feeds that they depend on, in the graph's order.
        states: ids of the cacheables that they depend on.
    """

    outputs: tuple[str, ...]
    conditions: tuple[str, ...]
    states: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the group depends on, in words."""
        return " + ".join((*self.conditions, *(["states"] if self.states else []))) or "constants"


def prepared_groups(file: Path) -> tuple[PreparedGroup, ...]:
    """The outputs of a prep graph, grouped by the conditions they depend on and by whether they depend on states.

    A condition that changes leaves the groups valid that do not depend on it. States are not told apart: a run's
    change together.
    """
    graph = onnx.load(file, load_external_data=False).graph
    inputs = [value.name for value in graph.input]
    origins = {name: frozenset([name]) for name in inputs}
    for node in graph.node:
        read = frozenset[str]().union(*(origins.get(name, frozenset()) for name in reads(node)))
        origins.update(dict.fromkeys(node.output, read))
    groups: dict[tuple[tuple[str, ...], bool], list[str]] = {}
    for output in graph.output:
        read = origins[output.name]
        conditions = tuple(name for name in inputs if name in read and not name.startswith(_CACHED))
        groups.setdefault((conditions, len(read) > len(conditions)), []).append(output.name)
    return tuple(
        PreparedGroup(tuple(outputs), conditions, _states(inputs, frozenset().union(*(origins[o] for o in outputs))))
        for (conditions, _), outputs in groups.items()
    )


def _states(inputs: list[str], read: frozenset[str]) -> tuple[str, ...]:
    return tuple(name.removeprefix(_CACHED) for name in inputs if name.startswith(_CACHED) and name in read)
