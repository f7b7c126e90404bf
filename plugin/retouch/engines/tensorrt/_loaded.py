"""An engine in the card's memory: its tensors, its profiles, its contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from retouch.bundle import EngineSpec
from retouch.engines._library import Library
from retouch.engines.tensorrt._messages import Messages
from retouch.errors import EngineError

__all__ = ["LoadedEngine", "Tensor", "deserialise"]

Shapes = Mapping[str, tuple[int, ...]]

_DTYPES: Mapping[str, np.dtype[Any]] = {
    "FLOAT": np.dtype(np.float32),
    "HALF": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "INT64": np.dtype(np.int64),
    "INT32": np.dtype(np.int32),
    "INT8": np.dtype(np.int8),
    "UINT8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}


@dataclass(frozen=True)
class Tensor:
    """An input or an output of an engine.

    Attributes:
        name: its name.
        dtype: its numpy dtype.
        ranges: of an input, per profile the least and the largest shape.
        on_host: whether the engine reads it in host memory.
        alias: of an output, the input whose memory it takes over, if there is one.
    """

    name: str
    dtype: np.dtype[Any]
    ranges: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    on_host: bool
    alias: str | None

    def admits(self, profile: int, shape: tuple[int, ...]) -> bool:
        """Whether a profile allows a shape."""
        least, largest = self.ranges[profile]
        return len(shape) == len(least) and all(
            low <= size <= high for low, size, high in zip(least, shape, largest, strict=True)
        )


class LoadedEngine:
    """An engine that this process can run. Several threads may use it."""

    def __init__(self, library: Library, spec: EngineSpec, engine: Any, messages: Messages) -> None:  # noqa: ANN401
        self.spec = spec
        self.engine = engine
        self.messages = messages
        self.profiles: int = engine.num_optimization_profiles
        self._trt = library.trt
        names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
        tensors = [self._tensor(name) for name in names]
        self.inputs = {tensor.name: tensor for tensor in tensors if self._is(tensor.name, "INPUT")}
        self.outputs = {tensor.name: tensor for tensor in tensors if self._is(tensor.name, "OUTPUT")}

    def profile_of(self, shapes: Shapes) -> int | None:
        """The number of the first profile that allows those shapes, ``None`` if none does.

        Shapes may be left out that are the same in every run.
        """
        fits = (number for number in range(self.profiles) if not self._misfits(number, shapes))
        return next(fits, None)

    def misfits(self, shapes: Shapes) -> list[str]:
        """The inputs whose shapes the last profile does not allow, each with what it does allow."""
        return [
            f"{tensor.name} {list(shapes[tensor.name])} not within {' to '.join(map(str, tensor.ranges[-1]))}"
            for tensor in self._misfits(self.profiles - 1, shapes)
        ]

    def _misfits(self, profile: int, shapes: Shapes) -> list[Tensor]:
        return [
            tensor
            for name, tensor in self.inputs.items()
            if name in shapes and not tensor.admits(profile, shapes[name])
        ]

    def context(self) -> Any:  # noqa: ANN401
        """A new context, which has no memory yet."""
        strategy = self._trt.ExecutionContextAllocationStrategy.USER_MANAGED
        if hasattr(self._trt, "DynamicShapesKernelSpecializationStrategy"):
            config = self.engine.create_runtime_config()
            config.set_execution_context_allocation_strategy(strategy)
            # Kernels that are swapped while the process runs would change the last bits of later edits, and kernels
            # compiled for every new number of rows would make the first edit of every region wait.
            specialisation = self._trt.DynamicShapesKernelSpecializationStrategy
            config.dynamic_shapes_kernel_specialization_strategy = specialisation.NONE
            context = self.engine.create_execution_context(config)
        else:
            context = self.engine.create_execution_context(strategy)
        if context is None:
            raise EngineError(f"The engine of {self.spec.graph} makes no context: {self.messages.cause}.")
        return context

    def scratch_size(self, profile: int) -> int:
        """The memory that a context needs for a profile."""
        return int(self.engine.get_device_memory_size_for_profile_v2(profile))

    def _tensor(self, name: str) -> Tensor:
        engine = self.engine
        is_input = self._is(name, "INPUT")
        alias = getattr(engine, "get_aliased_input_tensor", None)
        return Tensor(
            name,
            _dtype(engine.get_tensor_dtype(name).name, name),
            tuple(self._range(name, number) for number in range(self.profiles if is_input else 0)),
            engine.get_tensor_location(name) == self._trt.TensorLocation.HOST,
            None if is_input or alias is None else alias(name) or None,
        )

    def _range(self, name: str, profile: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The least and the largest shape of an input; profiles speak of those alone that have open dims."""
        shape = tuple(self.engine.get_tensor_shape(name))
        if min(shape, default=0) >= 0:
            return shape, shape
        least, _, largest = self.engine.get_tensor_profile_shape(name, profile)
        return tuple(least), tuple(largest)

    def _is(self, name: str, mode: str) -> bool:
        return bool(self.engine.get_tensor_mode(name).name == mode)


def deserialise(library: Library, runtime: Any, spec: EngineSpec, contents: bytes, messages: Messages) -> LoadedEngine:  # noqa: ANN401
    """The engine of which a file holds those contents.

    Raises:
        EngineError: the library does not take it.
    """
    messages.clear()
    engine = runtime.deserialize_cuda_engine(contents)
    if engine is None:
        raise EngineError(
            f"{spec.target} {library.version} does not load the engine of {spec.graph}: {messages.cause}. Build it "
            "again on this machine with `retouch build`; if the card's memory is full, close other sessions."
        )
    return LoadedEngine(library, spec, engine, messages)


def _dtype(name: str, tensor: str) -> np.dtype[Any]:
    if name not in _DTYPES:
        raise EngineError(f"Expected {tensor} to have one of the types {', '.join(_DTYPES)}, got {name}.")
    return _DTYPES[name]
