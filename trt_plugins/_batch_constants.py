"""Constants that follow from an open batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
from numpy.typing import NDArray

from retouch.errors import BuildRequestError

__all__ = ["SIZE", "BatchConstants", "differ"]

SIZE = "retouch.batch"
"""The value [1] that is the batch."""


@dataclass
class BatchConstants:
    """The constants of two graphs, and those that take the place of what differs."""

    graph: onnx.GraphProto
    other: onnx.GraphProto
    size: int
    of_other: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    made: list[onnx.TensorProto] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._mine, self._theirs = (
            {tensor.name: tensor for tensor in graph.initializer} for graph in (self.graph, self.other)
        )
        self._known: dict[tuple[str, str], str] = {}

    def has(self, name: str, of_other: str) -> bool:
        """Whether both are constants."""
        return name in self._mine and of_other in self._theirs

    def opened(self, name: str, of_other: str) -> str:
        """The value that is the one for one batch and the other for the other; itself, if they are equal.

        One constant may stand for the batch in one place and not in another: then the other graph has two.
        """
        if (name, of_other) not in self._known:
            mine, theirs = self._mine[name], self._theirs[of_other]
            self._known[name, of_other] = name if _equal(mine, theirs) else self._computed(mine, theirs)
        return self._known[name, of_other]

    def _computed(self, mine: onnx.TensorProto, theirs: onnx.TensorProto) -> str:
        """A value that follows from the batch."""
        if mine.external_data or theirs.external_data or mine.data_type != theirs.data_type:
            raise differ(f"the weight {mine.name} depends on the batch")
        one, two = (onnx.numpy_helper.to_array(tensor) for tensor in (mine, theirs))
        name = f"{mine.name}.of_batch{len(self._known)}"
        if one.shape != two.shape:
            return self._repeated(name, one, two)
        if mine.data_type != onnx.TensorProto.INT64:
            raise differ(f"the constant {mine.name} depends on the batch and is no shape")
        vector = self._linear(name, np.atleast_1d(one), np.atleast_1d(two))
        return vector if mine.dims else self._node("Squeeze", [vector], f"{name}.scalar")

    def repeat(self, name: str, rest: NDArray[np.int64], counted: NDArray[np.int64]) -> str:
        """A value of one sample for every sample: its shape is the rest, and the batch where that is counted."""
        shape = self._sum(f"{name}.shape", rest, counted)
        return self._node("Expand", [name, shape], f"{name}.of_batch")

    def add_to(self, graph: onnx.GraphProto, size: onnx.NodeProto) -> None:
        """Puts what was made in front of a graph's nodes, behind the node that gives the batch."""
        if not self.nodes:
            return
        graph.initializer.extend(self.made)
        for number, node in enumerate([size, *self.nodes]):
            graph.node.insert(number, node)

    def _linear(self, name: str, one: NDArray[np.int64], two: NDArray[np.int64]) -> str:
        """Whole numbers that follow from the batch."""
        slope, rest = np.divmod(two - one, self.of_other - self.size)
        if rest.any():
            raise differ(f"the constant {name} is no multiple of the batch")
        return self._sum(name, one - slope * self.size, slope)

    def _sum(self, name: str, constant: NDArray[np.int64], slope: NDArray[np.int64]) -> str:
        """A constant plus multiples of the batch."""
        scaled = self._node("Mul", [SIZE, self._constant(f"{name}.times", slope)], f"{name}.scaled")
        return self._node("Add", [scaled, self._constant(f"{name}.plus", constant)], name)

    def _repeated(self, name: str, one: NDArray[np.generic], two: NDArray[np.generic]) -> str:
        """The same numbers for every sample."""
        axes = [axis for axis, sizes in enumerate(zip(one.shape, two.shape, strict=False)) if sizes[0] != sizes[1]]
        same = one.ndim == two.ndim and [(one.shape[axis], two.shape[axis]) for axis in axes] == [
            (self.size, self.of_other)
        ]
        sample = one.take([0], axes[0]) if same else one
        if not same or not all(np.array_equal(array, np.broadcast_to(sample, array.shape)) for array in (one, two)):
            raise differ(f"the constant {name} depends on the batch, and is not the same for every sample")
        shape = self._linear(f"{name}.shape", np.array(one.shape), np.array(two.shape))
        return self._node("Expand", [self._constant(f"{name}.sample", sample), shape], name)

    def _node(self, op_type: str, inputs: list[str], output: str) -> str:
        self.nodes.append(onnx.NodeProto(op_type=op_type, name=output, input=inputs, output=[output]))
        return output

    def _constant(self, name: str, array: NDArray[np.generic]) -> str:
        self.made.append(onnx.numpy_helper.from_array(array, name))
        return name


def _equal(mine: onnx.TensorProto, theirs: onnx.TensorProto) -> bool:
    """Whether two constants are the same; weights in files are if they lie in the same place of it."""
    one, two = onnx.TensorProto(), onnx.TensorProto()
    one.CopyFrom(mine)
    two.CopyFrom(theirs)
    for tensor in (one, two):
        tensor.name = ""
    return bool(one.SerializeToString(deterministic=True) == two.SerializeToString(deterministic=True))


def differ(how: str) -> BuildRequestError:
    """The error that says how two graphs differ by more than their batches."""
    return BuildRequestError(
        f"Expected two bundles of one model that differ by their batches alone, but {how}. Export both by this version "
        "of Retouch with the same options, for batches of two or more, one with --share of the other."
    )
