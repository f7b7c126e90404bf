"""TensorRT and TensorRT-RTX as engines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import PLUGINS, STRIPPED, VERSION_COMPATIBLE, Bundle
from retouch.engines._library import load_library
from retouch.engines._protocol import Value
from retouch.engines._target import Target
from retouch.engines.tensorrt._cuda import Cuda
from retouch.engines.tensorrt._dlpack import borrowed
from retouch.engines.tensorrt._engine_choice import choose_engine, missing_engine, read_engine
from retouch.engines.tensorrt._loaded import deserialise
from retouch.engines.tensorrt._memory import DeviceMemory
from retouch.engines.tensorrt._messages import Messages, logger
from retouch.engines.tensorrt._plugins import load_plugins
from retouch.engines.tensorrt._program import TensorRtProgram
from retouch.engines.tensorrt._refit import fill_weights
from retouch.engines.tensorrt._rows import merged, taken
from retouch.engines.tensorrt._slot import Slots
from retouch.engines.tensorrt._tensor import DeviceTensor

__all__ = ["TensorRtEngine"]


class TensorRtEngine:
    """Runs the engines that were built from a bundle (``retouch build``) on the first GPU that the process sees.

    States stay in the card's memory, and move to host memory only where that is full. Several threads may use it.
    """

    threads = 1
    """Threads of the host that a run uses."""

    def __init__(self, bundle: Bundle, target: Target) -> None:
        """Looks for the library and the card; engines are loaded when they are first needed.

        Raises:
            EngineMissingError: the library, its bindings or a card is not there.
        """
        self._bundle = bundle
        self._target = target
        self._library = load_library(target)
        self._cuda = Cuda()
        self._memory = DeviceMemory(self._cuda)
        self._messages = Messages()
        self._logger = logger(self._library.trt, self._messages)
        self._runtime: Any = self._library.trt.Runtime(self._logger)
        self._lock = threading.Lock()
        self._slots: dict[str, Slots] = {}

    @property
    def name(self) -> str:
        """The name under which a manifest keeps what was measured on this engine."""
        return self._target.value

    @property
    def memory(self) -> DeviceMemory:
        """The card's memory."""
        return self._memory

    def value(self, array: NDArray[Any]) -> DeviceTensor:
        """The array as a value, which shares its memory until a run first reads it."""
        return DeviceTensor.from_numpy(self._memory, array)

    def adopt(self, tensor: object) -> DeviceTensor | None:
        """A value of this engine as it is, or a copy of another library's tensor in the card's memory; else ``None``.

        Raises:
            FeedError: its numbers do not lie one behind another, or are of an unknown type.
        """
        if isinstance(tensor, DeviceTensor) and tensor.lies_in(self._memory):
            return tensor
        where = getattr(tensor, "__dlpack_device__", None)
        if where is None or isinstance(tensor, np.ndarray) or int(where()[0]) != self._cuda.memory_kind:
            return None
        stream = self._memory.stream
        with borrowed(tensor, stream) as lent:
            value = DeviceTensor(self._memory, lent.shape, lent.dtype)
            value.fill(lent.address, stream)
            self._cuda.synchronise(stream)
        return value

    def merged(self, base: Value, update: Value, rows: NDArray[np.int64], axis: int) -> DeviceTensor:
        """``base`` with the rows along an axis replaced by those of ``update``, on the card."""
        return merged(self._memory, cast("DeviceTensor", base), cast("DeviceTensor", update), rows, axis)

    def taken(self, value: Value, rows: NDArray[np.int64], axis: int) -> DeviceTensor:
        """Some rows of a value along an axis, on the card."""
        return taken(self._memory, cast("DeviceTensor", value), rows, axis)

    def open(self, graph: Path, outputs: Sequence[str] | None = None) -> TensorRtProgram:
        """A program that gives those outputs of a graph; ``None`` means all that its engine has.

        Raises:
            EngineMissingError: no engine of the graph was built that has these outputs.
            EngineError: the engine was built by another version, or for other cards, or does not load.
            BundleError: its file is missing, truncated or changed.
        """
        name = choose_engine(self._bundle.manifest, self._target, graph.name, outputs, self._cuda)
        if name is None:
            raise missing_engine(self._bundle.path, self._bundle.manifest, self._target, graph.name)
        spec = self._bundle.manifest.engines[name]
        return TensorRtProgram(self._loaded(name), spec.outputs if outputs is None else tuple(outputs))

    def refusal(self, graph: Path) -> str | None:
        """Why the engine cannot run a graph of the bundle, ``None`` if it can."""
        if choose_engine(self._bundle.manifest, self._target, graph.name, None, self._cuda) is not None:
            return None
        return f"no engine of {graph.name} was built for {self._target}"

    def relieved_by(self, relieve: Callable[[int], int]) -> None:
        """Has a method move values to the host where the card's memory is full; its object is not kept alive.

        Args:
            relieve: makes room for so many bytes; returns how many it freed.
        """
        self._memory.relieved_by(relieve)

    def _loaded(self, name: str) -> Slots:
        with self._lock:
            if name not in self._slots:
                spec = self._bundle.manifest.engines[name]
                contents = read_engine(self._bundle, name, self._library, self._cuda)
                if PLUGINS in spec.traits:
                    load_plugins(self._library, self._runtime)
                # Such an engine brings the runtime that reads it, and perhaps plugins: code of the host.
                self._runtime.engine_host_code_allowed = VERSION_COMPATIBLE in spec.traits
                loaded = deserialise(self._library, self._runtime, spec, contents, self._messages)
                if STRIPPED in spec.traits:
                    fill_weights(self._library, self._logger, loaded, self._bundle)
                self._slots[name] = Slots(loaded, self._memory)
            return self._slots[name]
