"""A graph whose states are updated where they lie, such as the keys and values of a language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retouch.engines.ort._runtime import load_onnxruntime
from retouch.errors import EngineError

if TYPE_CHECKING:
    import onnxruntime

_NEXT = ".next"

Arrays = Mapping[str, NDArray[Any]]


class InPlaceProgram:
    """A graph in an ONNX Runtime session. Inputs for which it has an output ``<input>.next`` are its states."""

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self._session = session
        outputs = [value.name for value in session.get_outputs()]
        self.states: tuple[str, ...] = tuple(name.removesuffix(_NEXT) for name in outputs if name.endswith(_NEXT))
        self.outputs: tuple[str, ...] = tuple(name for name in outputs if not name.endswith(_NEXT))

    def bind(self, states: Arrays) -> InPlaceBinding:
        """A binding whose runs change the contents of these arrays, which are contiguous."""
        return InPlaceBinding(self._session, self.outputs, {name: states[name] for name in self.states})


class InPlaceBinding:
    """A program with its states bound once, each as input and as output. Belongs to one thread.

    Other inputs are copied into arrays that stay bound as long as shapes do not change.
    """

    def __init__(self, session: onnxruntime.InferenceSession, outputs: tuple[str, ...], states: Arrays) -> None:
        self._session = session
        self._outputs = outputs
        self._states = states  # onnxruntime does not keep the arrays alive
        self._bound: dict[str, NDArray[Any]] = {}
        self._binding = session.io_binding()
        make = load_onnxruntime().OrtValue.ortvalue_from_numpy
        # Outputs come back in the order in which they were bound.
        for name in outputs:
            self._binding.bind_output(name)
        for name, array in states.items():
            if not array.flags.c_contiguous:
                raise EngineError(f"Expected the state {name} to be contiguous. Pass numpy.ascontiguousarray of it.")
            value = make(array)
            self._binding.bind_ortvalue_input(name, value)
            self._binding.bind_ortvalue_output(f"{name}{_NEXT}", value)

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """The outputs that are no states, as arrays of their own."""
        for name, array in inputs.items():
            self._feed(name, array)
        for name in self._outputs:
            self._binding.bind_output(name)  # their shapes follow from the inputs
        try:
            self._session.run_with_iobinding(self._binding)
            values = self._binding.get_outputs()
        except Exception as error:  # onnxruntime's errors have no other class in common
            raise EngineError(
                f"ONNX Runtime failed ({str(error).strip()}). A position beyond the model's longest text, or too "
                "little memory, may be the cause."
            ) from error
        return {name: value.numpy() for name, value in zip(self._outputs, values, strict=False)}

    def _feed(self, name: str, array: NDArray[Any]) -> None:
        bound = self._bound.get(name)
        if bound is None or (bound.shape, bound.dtype) != (array.shape, array.dtype):
            bound = self._bound[name] = np.array(array, order="C")
            self._binding.bind_cpu_input(name, bound)
        else:
            bound[...] = array
