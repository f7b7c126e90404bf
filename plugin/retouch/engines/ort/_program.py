"""A graph in an ONNX Runtime session, and its inputs bound for repeated runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

from retouch.engines._protocol import Value
from retouch.engines.ort._runtime import load_onnxruntime
from retouch.engines.ort._value import OrtTensor
from retouch.errors import EngineError

if TYPE_CHECKING:
    import onnxruntime


class OrtProgram:
    """A program backed by one ``onnxruntime.InferenceSession``."""

    def __init__(
        self, session: onnxruntime.InferenceSession, device: str, kernels: Mapping[str, int], notes: Sequence[str] = ()
    ) -> None:
        self._session = session
        self._device = device
        self._notes = tuple(notes)
        self.kernels = kernels
        self.inputs: tuple[str, ...] = tuple(value.name for value in session.get_inputs())
        self.outputs: tuple[str, ...] = tuple(value.name for value in session.get_outputs())

    def refusal(self, inputs: Mapping[str, Value]) -> str | None:  # noqa: ARG002  (the protocol's)
        """``None``: ONNX Runtime takes inputs of all shapes that a graph has."""
        return None

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """The outputs, in fresh memory. Inputs that the program does not have are passed over."""
        return self.bind(inputs).run({})

    def bind(self, inputs: Mapping[str, Value]) -> OrtBinding:
        """A binding with those inputs in place."""
        return OrtBinding(self._session, self._device, self.inputs, self.outputs, inputs, self._notes)


class OrtBinding:
    """An ``IOBinding``: with hundreds of inputs, binding them anew costs as much as running hundreds of small nodes."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        device: str,
        names: tuple[str, ...],
        outputs: tuple[str, ...],
        inputs: Mapping[str, Value],
        notes: tuple[str, ...],
    ) -> None:
        self.notes = notes
        self._session = session
        self._device = device
        self._names = frozenset(names)
        self._outputs = outputs
        self._binding = session.io_binding()
        self._inputs: dict[str, Value] = {}
        self._bind(inputs)

    def run(self, changed: Mapping[str, Value]) -> dict[str, Value]:
        """The outputs, in fresh memory, after replacing the ``changed`` inputs."""
        self._bind(changed)
        for name in self._outputs:
            self._binding.bind_output(name, self._device)
        if _lends_outputs():
            return self._run_and_hand_over()
        try:
            self._execute()
            values = self._binding.get_outputs()
        finally:
            # The next run would otherwise write into the memory of the values returned here.
            self._binding.clear_binding_outputs()
        return {name: OrtTensor(value) for name, value in zip(self._outputs, values, strict=True)}

    def _run_and_hand_over(self) -> dict[str, Value]:
        """The outputs, which live as long as the binding that they come from; the next run has another one."""
        self._execute()
        used, self._binding = self._binding, self._session.io_binding()
        self._bind(self._inputs)
        return {
            name: OrtTensor(value, owner=used) for name, value in zip(self._outputs, used.get_outputs(), strict=True)
        }

    def _execute(self) -> None:
        try:
            self._session.run_with_iobinding(self._binding)
        except Exception as error:  # onnxruntime's errors have no other class in common
            raise EngineError(
                f"ONNX Runtime failed ({str(error).strip()}). The feeds have the shapes and types of the model, so one "
                "of them may hold a value that it does not take, such as a token id beyond the vocabulary; if memory "
                "ran out, drop runs that are not needed any more."
            ) from error

    def _bind(self, inputs: Mapping[str, Value]) -> None:
        bind = self._binding.bind_ortvalue_input
        for name, value in inputs.items():
            if name in self._names:
                bind(name, cast("OrtTensor", value).ort_value)
                self._inputs[name] = value


@cache
def _lends_outputs() -> bool:
    """Whether outputs are lost once their binding forgets them: releases before the one tested here lend them only."""
    return tuple(int(part) for part in load_onnxruntime().__version__.split(".")[:2]) < (1, 32)
