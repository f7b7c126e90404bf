"""The masked reference of edits in a row: what an edit leaves is what the next one is based on.

The masked reference computes the base run and an edit of it in one graph. Here that graph is cut where the second reads
what the first computed. The first part gives the values of the base run; the second takes them, and gives besides the
model's outputs the merged values, which replace them for the next edit. Values that no mask chooses from, such as
GroupNorm moments in the mode ``cached``, stay those of the base run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.passes import common as passes

from retouch.export.model_shapes import dtype_of, shape_of
from retouch.export.verify.runner import Runner
from retouch.region import ActiveRows
from retouch.validation.accuracy._feeds import Feeds
from retouch.validation.accuracy._reference import masks, named

LARGEST_STATE = 2**30
"""Bytes of values between two edits, beyond which there is no such reference: it keeps every attention score."""


class StepsReference:
    """The masked reference of edits in a row."""

    def __init__(self, model: ir.Model) -> None:
        passes.ShapeInferencePass(data_prop=True)(model)
        crossing = _crossing(model.graph)
        self.bytes = sum(math.prod(shape_of(value)) * dtype_of(value).itemsize for value in crossing)
        self._outputs = [str(value.name) for value in model.graph.outputs]
        self._carried, self._start, self._step = {}, None, None
        if self.fits:
            self._carried = _carried(model.graph, crossing)
            self._start = Runner.from_model(_start(model, [str(value.name) for value in crossing]))
            self._step = Runner.from_model(_step(model, crossing, self._carried.values()))
        self._state: Mapping[str, NDArray[Any]] = {}
        self._last: Feeds | None = None

    @property
    def fits(self) -> bool:
        """Whether the values between two edits are small enough to be kept."""
        return self.bytes <= LARGEST_STATE

    def run(self, base: Feeds, edit: Feeds, active: ActiveRows) -> Mapping[str, NDArray[Any]]:
        """The outputs of an edit; if its base is the edit before, of an edit of what that one left."""
        assert self._start is not None and self._step is not None
        if self._last is None or not same_feeds(self._last, base):
            self._state = self._start.run(named("old.", base))
        result = self._step.run({**self._state, **named("old.", base), **named("new.", edit), **masks(active)})
        self._state = {**self._state, **{old: result[new] for old, new in self._carried.items()}}
        self._last = edit
        return {name: result[name] for name in self._outputs}


def same_feeds(one: Feeds, other: Feeds) -> bool:
    """Whether all feeds are the same."""
    return all(np.array_equal(one[name], array) for name, array in other.items())


def _crossing(graph: ir.Graph) -> list[ir.Value]:
    """The values of the base run that the edit reads."""
    old = {value for value in graph.inputs if str(value.name).startswith("old.")}
    found: dict[ir.Value, None] = {}
    for node in graph:
        inputs = [value for value in node.inputs if value is not None and value.const_value is None]
        if inputs and all(value in old for value in inputs):
            old.update(node.outputs)
        else:
            found.update(dict.fromkeys(value for value in inputs if value in old))
    return list(found)


def _carried(graph: ir.Graph, crossing: Sequence[ir.Value]) -> dict[str, str]:
    """Of values that a mask chooses from, the names before and after."""
    known = set(crossing)
    chosen = {}
    for node in graph:
        if node.op_type == "Where" and _is_active(node.inputs[0]) and node.inputs[2] in known:
            chosen[str(node.inputs[2].name)] = str(node.outputs[0].name)
    return chosen


def _is_active(value: ir.Value | None) -> bool:
    """Whether a value is a mask of active rows, in some shape."""
    while value is not None and (node := value.producer()) is not None:
        if node.op_type not in ("Reshape", "Transpose"):
            return False
        value = node.inputs[0]
    return value is not None and str(value.name).startswith("active.")


def _start(model: ir.Model, names: Sequence[str]) -> ir.Model:
    """The part that computes the base run's values."""
    copy = model.clone()
    values = _values(copy.graph)
    copy.graph.outputs.clear()
    copy.graph.outputs.extend(values[name] for name in names if values[name].producer() is not None)
    return _pruned(copy)


def _step(model: ir.Model, crossing: Sequence[ir.Value], merged: Sequence[str] | Any) -> ir.Model:  # noqa: ANN401
    """The part that computes an edit."""
    copy = model.clone()
    values = _values(copy.graph)
    copy.graph.outputs.extend(values[name] for name in merged)
    for original in crossing:
        value = values[str(original.name)]
        if value.producer() is None:
            continue
        stand_in = ir.Value(name=value.name, type=value.type, shape=value.shape)
        value.name = f"{value.name}.computed"
        ir.convenience.replace_all_uses_with(value, stand_in)
        copy.graph.inputs.append(stand_in)
    return _pruned(copy)


def _values(graph: ir.Graph) -> dict[str, ir.Value]:
    made = {str(value.name): value for node in graph for value in node.outputs}
    return {**made, **{str(value.name): value for value in graph.inputs}}


def _pruned(model: ir.Model) -> ir.Model:
    passes.RemoveUnusedNodesPass()(model)
    for value in [value for value in model.graph.inputs if not value.uses()]:
        model.graph.inputs.remove(value)
    return model
