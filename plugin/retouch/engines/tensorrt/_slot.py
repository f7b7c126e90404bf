"""Where an engine runs: a context at one profile, with a stream and memory of its own."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from numpy.typing import NDArray

from retouch.engines.tensorrt._cuda import Cuda
from retouch.engines.tensorrt._loaded import LoadedEngine
from retouch.engines.tensorrt._memory import Buffer, DeviceMemory
from retouch.errors import DeviceMemoryError, EngineError

__all__ = ["CapturedRun", "Slot", "Slots"]

_KEPT_CONTEXTS = 4
"""So many contexts of a profile keep a captured run each, beside each other; every one has memory of its own."""


class CapturedRun:
    """A run of a context as a graph of CUDA, given back with this object."""

    def __init__(self, cuda: Cuda, handle: Any) -> None:  # noqa: ANN401  (of an optional library)
        self.handle = handle
        self._done = weakref.finalize(self, cuda.forget, handle)
        self._done.atexit = False


class Slot:
    """A context of an engine, which keeps its shapes and addresses from run to run. Belongs to one thread at a time.

    Attributes:
        profile: the profile that it runs at.
        stream: its stream.
        generation: how often its own memory changed its place.
        last: what ran in it last, if it is still there.
    """

    def __init__(self, loaded: LoadedEngine, profile: int, memory: DeviceMemory) -> None:
        self._memory = memory
        self.stream = memory.cuda.stream()
        self.profile = profile
        self.generation = 0
        self.last: weakref.ref[object] | None = None
        self._captured: weakref.ref[CapturedRun] | None = None
        self._loaded = loaded
        self._own: dict[str, Buffer] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._addresses: dict[str, int] = {}
        self._context = loaded.context()
        self._do(self._context.set_optimization_profile_async(profile, self.stream), f"profile {profile}")
        scratch = self.own("", loaded.scratch_size(profile))
        self._context.set_device_memory(scratch.address, scratch.size)

    def __del__(self) -> None:
        with suppress(EngineError, AttributeError):  # there is no stream if it could not be made
            self._memory.cuda.destroy(self.stream)

    def own(self, name: str, size: int) -> Buffer:
        """Memory that stays with the slot under a name; it moves only if it has to grow."""
        buffer = self._own.get(name)
        if buffer is None or buffer.size < size:
            self._own.pop(name, None)
            self.generation += 1
            buffer = self._own[name] = self._memory.allocate(size, self.stream)
        return buffer

    @property
    def captured(self) -> CapturedRun | None:
        """What was captured from the context as it is: CUDA does not launch what was captured before a change."""
        return None if self._captured is None else self._captured()

    def shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Gives an input its shape."""
        if self._shapes.get(name) != shape:
            self._captured = None
            self._do(self._context.set_input_shape(name, shape), f"{name} of shape {shape}")
            self._shapes[name] = shape

    def output_shape(self, name: str) -> tuple[int, ...]:
        """The shape that an output has for the inputs' shapes."""
        shape = tuple(self._context.get_tensor_shape(name))
        if min(shape, default=0) < 0:
            raise EngineError(
                f"Expected the shape of {name} of {self._loaded.spec.graph} to follow from those of its inputs, got "
                f"{shape}. Run the bundle on ONNX Runtime."
            )
        return shape

    def address(self, name: str, address: int) -> None:
        """Says where a tensor is."""
        if self._addresses.get(name) != address:
            self._captured = None
            self._do(self._context.set_tensor_address(name, address), f"{name} at its address")
            self._addresses[name] = address

    def on_host(self, name: str, array: NDArray[Any]) -> None:
        """Says where an input is that the engine reads in host memory; the array lives as long as it is there."""
        self._arrays[name] = array
        self.address(name, array.ctypes.data)

    def enqueue(self) -> None:
        """Puts a run on the slot's stream."""
        self._do(self._context.execute_async_v3(self.stream), "a run")

    @property
    def capturable(self) -> bool:
        """Whether the run can be captured; TensorRT-RTX tells, and TensorRT always can what Retouch builds."""
        tells = getattr(self._context, "is_stream_capturable", None)
        return tells is None or bool(tells(self.stream))

    def capture(self) -> CapturedRun:
        """The run as a graph of CUDA. The context must have run before with these shapes."""
        cuda = self._memory.cuda
        cuda.begin_capture(self.stream)
        try:
            self.enqueue()
        finally:
            run = CapturedRun(cuda, cuda.end_capture(self.stream))
        self._captured = weakref.ref(run)
        return run

    def _do(self, succeeded: object, what: str) -> None:
        if not succeeded:
            raise EngineError(
                f"{self._loaded.spec.target} refuses {what} of {self._loaded.spec.graph}: "
                f"{self._loaded.messages.cause}. Build the engines again; if it stays so, run on ONNX Runtime."
            )


class Slots:
    """The slots of an engine. As many are made as threads run it at once, and a few that keep captured runs.

    Attributes:
        loaded: the engine.
        memory: the card's memory.
        uncaptured: why no runs are captured any more, if one could not be.
    """

    def __init__(self, loaded: LoadedEngine, memory: DeviceMemory) -> None:
        self.loaded = loaded
        self.memory = memory
        self.uncaptured: str | None = None
        self._lock = threading.Lock()
        self._idle: list[Slot] = []

    @contextmanager
    def lend(self, profile: int, preferred: Slot | None, run: CapturedRun | None) -> Iterator[Slot]:
        """A slot of a profile that nobody else uses until the context ends; one in which a run failed is not kept.

        Args:
            profile: the profile.
            preferred: the slot to take if it is idle and no other run was captured from it.
            run: what was captured from that slot.
        """
        slot = self._take(profile, preferred, run) or self._new(profile)
        try:
            yield slot
        except BaseException:
            with suppress(EngineError):  # what was put on its stream may still use what is given back now
                self.memory.cuda.synchronise(slot.stream)
            raise
        with self._lock:
            self._idle.append(slot)

    def _take(self, profile: int, preferred: Slot | None, run: CapturedRun | None) -> Slot | None:
        """An idle slot; one that keeps a captured run only where there are many of them."""
        with self._lock:
            fitting = [slot for slot in self._idle if slot.profile == profile]
            free = [slot for slot in fitting if slot.captured is None]
            if preferred in fitting and (preferred in free or preferred.captured is run):
                chosen: Slot | None = preferred
            else:
                longest_ago = fitting[0] if len(fitting) >= _KEPT_CONTEXTS else None
                chosen = next(iter(free), longest_ago)
            if chosen is not None:
                self._idle.remove(chosen)
            return chosen

    def _new(self, profile: int) -> Slot:
        """A new slot; where there is no room for its memory, an idle one whose captured run is given up."""
        try:
            return Slot(self.loaded, profile, self.memory)
        except DeviceMemoryError:
            with self._lock:
                idle = next((slot for slot in self._idle if slot.profile == profile), None)
                if idle is None:
                    raise
                self._idle.remove(idle)
                return idle
