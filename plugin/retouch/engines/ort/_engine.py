"""ONNX Runtime as an engine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import read_shared, relocate
from retouch.engines._protocol import Value
from retouch.engines.ort._in_place import InPlaceProgram
from retouch.engines.ort._kernels import RECORD_ASSIGNMENT, kernels_of
from retouch.engines.ort._program import OrtProgram
from retouch.engines.ort._prune import prune_file
from retouch.engines.ort._reshaped_weights import give_reshaped_weights
from retouch.engines.ort._rest import rest_between_runs
from retouch.engines.ort._runtime import (
    DEFAULT_DEVICE,
    DEFAULT_PROVIDER,
    device_of,
    load_onnxruntime,
    require_providers,
)
from retouch.engines.ort._stored_weights import give_stored_weights
from retouch.engines.ort._value import OrtTensor
from retouch.engines.ort._weights import WeightStorage, checked_weights
from retouch.errors import EngineError, EngineMissingError, RetouchError
from retouch.ort_ep import PROVIDER, Availability, register

if TYPE_CHECKING:
    import onnxruntime

Provider = str | tuple[str, dict[str, Any]]

_MOST_THREADS = 1024

_FATAL_ONLY = 3
"""Severity from which onnxruntime logs; what it warns of (initializers it folded away) is not the user's business."""


def _explained(name: str, error: str, providers: Sequence[str]) -> str:
    advice = (
        "These providers have no bfloat16 kernels for it: export the model with --precision float32 or float16."
        if "bfloat16" in error or "NOT_IMPLEMENTED" in error
        else "If the file is whole, update onnxruntime or choose other providers."
    )
    return f"ONNX Runtime ({', '.join(providers)}) cannot load {name}: {error.strip()}. {advice}"


class OrtEngine:
    """An engine on ONNX Runtime's execution providers.

    Every graph refers to the bundle's one weights file, which onnxruntime maps into memory: a weight that two graphs
    use as it is stored is held once. A weight that a kernel packs into a layout of its own is held by each session.

    On the CPU the engine has kernels of its own for the operators of edit graphs, where Retouch was built with them.
    """

    def __init__(
        self,
        providers: Sequence[Provider] | None = None,
        threads: int | None = None,
        weights: WeightStorage | str = WeightStorage.FLOAT32,
    ) -> None:
        """Keeps the options; onnxruntime is imported with the first graph.

        Args:
            providers: names, or pairs of name and options; ``None`` means the CPU, with Retouch's own kernels where
                they are there. Name ``RetouchExecutionProvider`` to require them, ``CPUExecutionProvider`` alone to
                go without. The options of the former are ``in_place``, ``threads`` and ``trace``.
            threads: threads per run; ``None`` leaves the choice to onnxruntime.
            weights: how Retouch's own kernels keep weights; anything but float32 requires these kernels.

        Raises:
            RetouchError: the number of threads is none, the providers are a single name, or there is no such storage.
        """
        if isinstance(providers, str):
            raise RetouchError(f"Expected a list of execution providers, got {providers!r}. Write [{providers!r}].")
        given: object = () if providers is None else providers
        if not isinstance(given, Sequence) or not all(isinstance(item, str | tuple) and item for item in given):
            raise RetouchError(
                f"Expected a list of execution providers, names or pairs of name and options, got {providers!r}. "
                f"Write [{DEFAULT_PROVIDER!r}]."
            )
        whole = isinstance(threads, int) and not isinstance(threads, bool)
        if threads is not None and not (whole and 1 <= threads <= _MOST_THREADS):
            raise RetouchError(
                f"Expected threads to be an integer from 1 to {_MOST_THREADS}, got {threads!r}. None leaves the choice "
                "to onnxruntime."
            )
        self._asked = tuple(providers or ())
        self._threads = threads
        self.weights = checked_weights(weights)
        self._lock = threading.Lock()
        self._kernels: Availability | None = None

    @property
    def kernels(self) -> Availability:
        """Whether the engine uses Retouch's own kernels, or why not; asking registers them."""
        with self._lock:
            if self._kernels is None:
                self._kernels = self._find_kernels()
            return self._kernels

    @property
    def providers(self) -> tuple[str, ...]:
        """The execution providers, by preference."""
        if self._asked:
            return tuple(item if isinstance(item, str) else item[0] for item in self._asked)
        return (PROVIDER, DEFAULT_PROVIDER) if self.kernels else (DEFAULT_PROVIDER,)

    @property
    def name(self) -> str:
        """The name under which a manifest keeps what was measured on this engine."""
        return f"onnxruntime.{self.providers[0].removesuffix('ExecutionProvider').lower()}"

    @property
    def threads(self) -> int:
        """The number of host threads that a run uses."""
        return self._threads or os.cpu_count() or 1

    @property
    def device(self) -> str:
        """The device that holds the engine's values, as onnxruntime names it."""
        return device_of(self.providers[0])

    def value(self, array: NDArray[Any]) -> OrtTensor:
        """The array as a value; on the host it shares the array's memory.

        Raises:
            EngineMissingError: onnxruntime, or a provider that was asked for, is not there.
        """
        if self.device != DEFAULT_DEVICE:
            self._runtime()  # which says more than onnxruntime does of a device that it does not know
        return OrtTensor.from_numpy(array, self.device)

    def adopt(self, tensor: object) -> OrtTensor | None:
        """A value on the engine's device as it is; ``None`` for all others, which come by way of numpy."""
        return tensor if isinstance(tensor, OrtTensor) and tensor.ort_value.device_name() == self.device else None

    def merged(self, base: Value, update: Value, rows: NDArray[np.int64], axis: int) -> OrtTensor:
        """``base`` with the rows along an axis replaced by those of ``update``, in fresh memory."""
        merged = base.numpy().copy()
        np.moveaxis(merged, axis, 0)[rows] = np.moveaxis(update.numpy(), axis, 0)
        return self.value(merged)

    def taken(self, value: Value, rows: NDArray[np.int64], axis: int) -> OrtTensor:
        """Some rows of a value along an axis, in fresh memory."""
        return self.value(np.take(value.numpy(), rows, axis=axis))

    def refusal(self, graph: Path) -> str | None:  # noqa: ARG002  (the protocol's)
        """``None``: ONNX Runtime runs all graphs of a bundle."""
        return None

    def relieved_by(self, relieve: Callable[[int], int]) -> None:
        """Nothing: ONNX Runtime keeps values where they are."""

    def open(self, graph: Path, outputs: Sequence[str] | None = None) -> OrtProgram:
        """A program that computes only those outputs of a graph file; ``None`` means all of them.

        Raises:
            EngineMissingError: onnxruntime, or a provider that was asked for, is not there.
            EngineError: onnxruntime cannot load the graph.
        """
        session = self._session(graph, outputs)
        return self._program(session)

    def _program(self, session: onnxruntime.InferenceSession) -> OrtProgram:
        if self.kernels:
            return OrtProgram(session, self.device, kernels_of(session))
        # Where others were asked for nobody expects the kernels.
        notes = () if self._asked else (f"on stock kernels alone: {self.kernels.reason}",)
        return OrtProgram(session, self.device, {}, notes)

    def open_in_place(self, graph: Path) -> InPlaceProgram:
        """A program that updates its states where they lie: inputs for which it has an output ``<input>.next``.

        Raises:
            EngineMissingError: onnxruntime, or a provider that was asked for, is not there.
            EngineError: onnxruntime cannot load the graph, or keeps tensors elsewhere than in host memory.
        """
        if self.device != DEFAULT_DEVICE:
            raise EngineError(
                f"Expected providers that keep tensors in host memory, got {', '.join(self.providers)}. "
                f"States that are updated in place lie there only, so far: use {DEFAULT_PROVIDER}."
            )
        return InPlaceProgram(self._session(graph, None))

    def load(
        self, model: str | bytes, folder: Path, name: str, library: Path | None = None
    ) -> onnxruntime.InferenceSession:
        """A session of a model on the engine's providers.

        Args:
            model: the path of a file, or its contents.
            folder: where its weights are.
            name: what to call it in messages.
            library: custom operators that it has.

        Raises:
            EngineMissingError: onnxruntime, or a provider that was asked for, is not there.
            EngineError: onnxruntime cannot load it.
        """
        runtime = self._runtime()
        options = self.session_options(folder, library)
        # Devices are how every release takes a plug-in; naming providers as well would undo it.
        named = {} if self.kernels else {"providers": list(self._asked or self.providers)}
        try:
            # Some releases would go on with other providers, and print that.
            session = runtime.InferenceSession(model, options, **named, enable_fallback=0)
        except Exception as error:  # onnxruntime's errors have no other class in common
            raise EngineError(_explained(name, str(error), self.providers)) from error
        # A provider whose libraries do not load is left out with no more than a warning.
        require_providers(self.providers, session.get_providers(), "to load")
        return session

    def session_options(self, folder: Path, library: Path | None = None) -> onnxruntime.SessionOptions:
        """Options with Retouch's kernels, where the engine has them; other providers are named beside them.

        Args:
            folder: where a model's weights are.
            library: custom operators that it has.
        """
        options = self._runtime().SessionOptions()
        options.log_severity_level = _FATAL_ONLY
        options.inter_op_num_threads = 1
        rest_between_runs(options)
        if self._threads is not None:
            options.intra_op_num_threads = self._threads
        if self.kernels:
            options.add_session_config_entry(RECORD_ASSIGNMENT, "1")
            own = next((item[1] for item in self._asked if not isinstance(item, str) and item[0] == PROVIDER), {})
            # Kernels cut their work for the session's threads, of which no interface tells them.
            given = {
                "weights": str(self.weights),
                "threads": str(self.threads),
                **{name: str(value) for name, value in own.items()},
            }
            options.add_provider_for_devices(self.kernels.required(), given)
        if library is not None:
            options.register_custom_ops_library(str(library))
        # A graph that was cut down is given as bytes, which do not say where the weights file lies.
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
        return options

    def _session(self, graph: Path, outputs: Sequence[str] | None) -> onnxruntime.InferenceSession:
        model: str | bytes = str(graph)
        folder = graph.parent
        if outputs is not None or read_shared(folder) is not None:
            pruned = prune_file(graph, outputs)
            give_reshaped_weights(pruned)
            if self.kernels:
                give_stored_weights(pruned)
            folder = relocate(pruned, folder)
            model = pruned.SerializeToString()
        return self.load(model, folder, graph.name)

    def _find_kernels(self) -> Availability:
        found = self._looked_up()
        if not found and self.weights is not WeightStorage.FLOAT32:
            raise EngineMissingError(
                f"Expected Retouch's kernels to keep weights as {self.weights}, but {found.reason}. Stock kernels take "
                f"them as {WeightStorage.FLOAT32} only."
            )
        return found

    def _looked_up(self) -> Availability:
        names = {item if isinstance(item, str) else item[0] for item in self._asked}
        if self._asked and PROVIDER not in names:
            return Availability((), None, "the providers that were asked for do not include them")
        if not names <= {PROVIDER, DEFAULT_PROVIDER}:
            raise EngineMissingError(f"Expected {PROVIDER} alone or with {DEFAULT_PROVIDER}, got {sorted(names)}.")
        found = register()
        if self._asked:
            found.required()
        return found

    def _runtime(self) -> ModuleType:
        runtime = load_onnxruntime()
        if not self.kernels:
            require_providers(self.providers, runtime.get_available_providers(), "in the installed onnxruntime")
        return runtime
