"""What a session asks of an inference engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Value(Protocol):
    """A tensor where the engine wants it. Nobody changes a value's contents once it exists."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""

    @property
    def dtype(self) -> str:
        """The numpy dtype's name."""

    @property
    def nbytes(self) -> int:
        """The size of the contents."""

    @property
    def digest(self) -> str:
        """A digest of dtype, shape and contents."""

    def numpy(self) -> NDArray[Any]:
        """The contents as a read-only array, without a copy where the engine keeps them in host memory."""


class Movable(Value, Protocol):
    """A value in memory that is short."""

    def move_to_host(self) -> int:
        """Frees that memory, unless a run reads the value; returns how many bytes became free."""


class Binding(Protocol):
    """A program with its inputs in place, for repeated runs in which few inputs change. Belongs to one thread."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth saying about the last run."""

    def run(self, changed: Mapping[str, Value]) -> dict[str, Value]:
        """The program's outputs, in fresh memory, after replacing the ``changed`` inputs; they stay replaced.

        Inputs that the program does not have are passed over.
        """


class Program(Protocol):
    """A graph ready to run. Several threads may run it at once."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs that the graph has."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs that a run computes."""

    @property
    def kernels(self) -> Mapping[str, int]:
        """The number of nodes per operator that run on kernels of Retouch's own."""

    def refusal(self, inputs: Mapping[str, Value]) -> str | None:
        """Why the program does not take inputs of these shapes, ``None`` if it does; inputs may be left out."""

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """The outputs, in fresh memory. Inputs that the program does not have are passed over."""

    def bind(self, inputs: Mapping[str, Value]) -> Binding:
        """A binding with those inputs in place; the others must be among the first run's changes."""


class Engine(Protocol):
    """Opens the graphs of a bundle."""

    @property
    def name(self) -> str:
        """The name under which a manifest keeps what was measured on this engine."""

    @property
    def threads(self) -> int:
        """The number of host threads that a run uses."""

    def value(self, array: NDArray[Any]) -> Value:
        """The array as a value. The caller does not change the array any more: host engines share its memory."""

    def adopt(self, tensor: object) -> Value | None:
        """A value of this engine as it is, or a copy on its device of another library's tensor there; else ``None``."""

    def merged(self, base: Value, update: Value, rows: NDArray[np.int64], axis: int) -> Value:
        """``base`` with the rows along an axis replaced by those of ``update``, in fresh memory."""

    def taken(self, value: Value, rows: NDArray[np.int64], axis: int) -> Value:
        """Some rows of a value along an axis, in fresh memory."""

    def refusal(self, graph: Path) -> str | None:
        """Why the engine cannot run a graph of the bundle, ``None`` if it can."""

    def relieved_by(self, relieve: Callable[[int], int]) -> None:
        """Has a method make room for so many bytes where memory is short; it returns how many it freed."""

    def open(self, graph: Path, outputs: Sequence[str] | None = None) -> Program:
        """A program that computes only those outputs of a graph file; ``None`` means all of them."""
