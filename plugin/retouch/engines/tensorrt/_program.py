"""A graph as an engine runs it, and its inputs in place for repeated runs."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from retouch.engines._protocol import Value
from retouch.engines.tensorrt._cuda import Cuda
from retouch.engines.tensorrt._loaded import LoadedEngine, Tensor
from retouch.engines.tensorrt._memory import Buffer
from retouch.engines.tensorrt._slot import CapturedRun, Slot, Slots
from retouch.engines.tensorrt._tensor import DeviceTensor
from retouch.errors import EngineError

__all__ = ["TensorRtBinding", "TensorRtProgram"]

_CAPTURED = 64 << 20
"""Runs with larger outputs are not captured: they write into fresh memory, because copying would take longer."""


class TensorRtProgram:
    """A program backed by an engine, of whose outputs it hands out some."""

    def __init__(self, slots: Slots, outputs: tuple[str, ...]) -> None:
        self._slots = slots
        self.inputs: tuple[str, ...] = tuple(slots.loaded.inputs)
        self.outputs = outputs
        self.kernels: Mapping[str, int] = {}

    def refusal(self, inputs: Mapping[str, Value]) -> str | None:
        """Why the engine does not take inputs of these shapes, ``None`` if it does."""
        loaded = self._slots.loaded
        shapes = {name: value.shape for name, value in inputs.items()}
        if loaded.profile_of(shapes) is not None:
            return None
        rows = ", ".join(str(profile.rows) for profile in loaded.spec.profiles)
        return (
            f"no profile of the engine (made for {rows} rows) takes the region: {'; '.join(loaded.misfits(shapes)[:2])}"
        )

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """The outputs, in fresh memory. Inputs that the program does not have are passed over."""
        return self.bind(inputs).run({})

    def bind(self, inputs: Mapping[str, Value]) -> TensorRtBinding:
        """A binding with those inputs in place."""
        return TensorRtBinding(self._slots, self.outputs, inputs)


@dataclass(frozen=True, eq=False)
class _Placed:
    """How a run was placed; the next one may follow in its steps while all of this is unchanged.

    Attributes:
        slot: where it ran.
        generation: of the slot's memory.
        moves: moves of values to the host before it.
        staged: shapes of the inputs that are copied into the slot's memory.
        results: shapes of the outputs.
        graph: the run as it was captured, if it was.
    """

    slot: Slot
    generation: int
    moves: int
    staged: Mapping[str, tuple[int, ...]]
    results: Mapping[str, tuple[int, ...]]
    graph: CapturedRun | None = None

    def holds(self, slot: Slot, moves: int, staged: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether shapes and addresses of inputs are what they were."""
        now = (slot, slot.generation, moves, staged)
        return now == (self.slot, self.generation, self.moves, self.staged)

    def ready(self, slot: Slot) -> bool:
        """Whether nothing else ran in the slot since, so that the context is as it was left."""
        return slot.last is not None and slot.last() is self


class TensorRtBinding:
    """Inputs of an engine in the card's memory.

    What it was made with is read where it lies; what runs replace is copied into memory of the slot, whose addresses
    stay. A run that comes again is captured as a graph of CUDA, and launched by one call from then on: as long as
    nothing else runs in its slot, since a graph is void once the context that it was captured from has changed.
    """

    def __init__(self, slots: Slots, outputs: tuple[str, ...], inputs: Mapping[str, Value]) -> None:
        self._slots = slots
        self._loaded: LoadedEngine = slots.loaded
        self._cuda: Cuda = slots.memory.cuda
        self._outputs = outputs
        self._aliases = {tensor.alias: tensor.name for tensor in self._loaded.outputs.values() if tensor.alias}
        self._bound = self._known(inputs)
        self._bound_ids = {id(value) for value in self._bound.values()}
        self._staged: dict[str, DeviceTensor] = {}
        self._placed: _Placed | None = None
        self._moved = 0
        self._launched = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Which profile the last run took, whether it was a captured graph, and what had to move to the host."""
        profiles, placed = self._loaded.spec.profiles, self._placed
        notes = []
        if profiles and placed is not None:
            profile = placed.slot.profile
            notes.append(f"profile {profile + 1} of {len(profiles)}, made for {profiles[profile].rows} rows")
        if self._slots.uncaptured is not None:
            notes.append(f"runs are started call by call, because one could not be captured: {self._slots.uncaptured}")
        if self._launched:
            notes.append("launched as a captured graph")
        if self._moved:
            notes.append(f"the card's memory was full: {self._moved / 2**20:.1f} MiB of states moved to host memory")
        return tuple(notes)

    def reads(self, value: object) -> bool:
        """Whether a run reads that value."""
        return id(value) in self._bound_ids or any(value is staged for staged in self._staged.values())

    def run(self, changed: Mapping[str, Value]) -> dict[str, Value]:
        """The outputs, in fresh memory, after replacing the ``changed`` inputs."""
        self._staged.update(self._known(changed))
        staged = {name: value.shape for name, value in self._staged.items()}
        memory, last = self._slots.memory, self._placed
        with memory.used_by(self) as moves:
            same = last is not None and last.staged == staged
            profile = last.slot.profile if last is not None and same else self._profile()
            preferred, graph = (None, None) if last is None else (last.slot, last.graph)
            with self._slots.lend(profile, preferred, graph) as slot:
                holds = last is not None and last.holds(slot, moves, staged)
                if last is not None and holds and last.ready(slot):
                    results = self._again(last)
                else:
                    results = self._anew(slot, staged, capture=holds and graph is None)
                slot.last = None if self._placed is None else weakref.ref(self._placed)
        self._moved = memory.take_moved()
        return results

    def _known(self, inputs: Mapping[str, Value]) -> dict[str, DeviceTensor]:
        return {name: cast("DeviceTensor", value) for name, value in inputs.items() if name in self._loaded.inputs}

    def _profile(self) -> int:
        inputs = {**self._bound, **self._staged}
        missing = [name for name in self._loaded.inputs if name not in inputs]
        if missing:
            raise EngineError(f"Expected all inputs of {self._loaded.spec.graph}, but it lacks {', '.join(missing)}.")
        shapes = {name: value.shape for name, value in inputs.items()}
        profile = self._loaded.profile_of(shapes)
        if profile is None:
            raise EngineError(
                f"Expected inputs that a profile of the engine of {self._loaded.spec.graph} takes, got "
                f"{'; '.join(self._loaded.misfits(shapes))}. Build it with a larger profile (--profile rows=all, and "
                "--profile batch=LEAST..MOST for other batches)."
            )
        return profile

    def _anew(self, slot: Slot, staged: Mapping[str, tuple[int, ...]], *, capture: bool) -> dict[str, Value]:
        """A run whose shapes or addresses are new to the slot; if that is wanted, captured for the next one."""
        self._placed, self._launched = None, False
        for name, value in {**self._bound, **self._staged}.items():
            slot.shape(name, value.shape)
            self._place_input(slot, name, value)
        shapes = {name: slot.output_shape(name) for name in self._loaded.outputs}
        small = sum(_size(self._loaded.outputs[name], shapes[name]) for name in self._outputs) <= _CAPTURED
        fresh = {} if small else self._fresh(slot, shapes)
        for name, tensor in self._loaded.outputs.items():
            buffer = fresh.get(name) or slot.own(name, _size(tensor, shapes[name]))
            slot.address(name, buffer.address)
            self._place_alias(slot, tensor, buffer)
        slot.enqueue()
        graph = self._captured(slot) if small and capture else None
        results = self._collected(slot, shapes, fresh)
        if small:
            self._placed = _Placed(slot, slot.generation, self._slots.memory.moves, staged, shapes, graph)
        return results

    def _captured(self, slot: Slot) -> CapturedRun | None:
        """The run that the slot is ready for; what is read in host memory is not read again by a graph."""
        on_host = any(tensor.on_host for tensor in self._loaded.inputs.values())
        if on_host or self._slots.uncaptured is not None or not slot.capturable:
            return None
        try:
            return slot.capture()
        except EngineError as error:  # it runs as well without; a card that takes no more work fails there, too
            self._slots.uncaptured = str(error)
            return None

    def _again(self, last: _Placed) -> dict[str, Value]:
        """A run like the last one, but for the contents of the inputs that are copied into the slot's memory."""
        slot = last.slot
        for name, value in self._staged.items():
            self._place_input(slot, name, value)
        for name in self._aliases.values():
            tensor = self._loaded.outputs[name]
            self._place_alias(slot, tensor, slot.own(name, _size(tensor, last.results[name])))
        if last.graph is None:
            last = self._placed = replace(last, graph=self._captured(slot))
        if last.graph is None:
            slot.enqueue()
        else:
            self._cuda.launch(last.graph.handle, slot.stream)
            self._launched = True
        return self._collected(slot, last.results, {})

    def _place_input(self, slot: Slot, name: str, value: DeviceTensor) -> None:
        if name in self._aliases:
            return  # it goes where the output is
        if self._loaded.inputs[name].on_host:
            slot.on_host(name, value.numpy())
        elif name in self._staged:
            own = slot.own(name, value.nbytes)
            value.copy_to(own.address, slot.stream)
            slot.address(name, own.address)
        else:
            slot.address(name, value.buffer(slot.stream).address)

    def _place_alias(self, slot: Slot, tensor: Tensor, buffer: Buffer) -> None:
        if tensor.alias is not None:  # contents of values do not change, so the engine works on a copy
            value = self._staged.get(tensor.alias) or self._bound[tensor.alias]
            value.copy_to(buffer.address, slot.stream)
            slot.address(tensor.alias, buffer.address)

    def _fresh(self, slot: Slot, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Buffer]:
        """Fresh memory for the outputs that are asked for."""
        tensors = {name: self._loaded.outputs[name] for name in self._outputs}
        allocate = self._slots.memory.allocate
        return {name: allocate(_size(tensor, shapes[name]), slot.stream) for name, tensor in tensors.items()}

    def _collected(
        self, slot: Slot, shapes: Mapping[str, tuple[int, ...]], fresh: Mapping[str, Buffer]
    ) -> dict[str, Value]:
        """The outputs as values, when the card has finished; small ones are copied out of the slot's memory."""
        given = fresh or self._fresh(slot, shapes)
        results: dict[str, Value] = {}
        for name, buffer in given.items():
            tensor = self._loaded.outputs[name]
            if not fresh:
                self._cuda.copy(buffer.address, slot.own(name, buffer.size).address, buffer.size, slot.stream)
            results[name] = DeviceTensor(self._slots.memory, shapes[name], tensor.dtype, buffer=buffer)
        self._cuda.synchronise(slot.stream)
        return results


def _size(tensor: Tensor, shape: tuple[int, ...]) -> int:
    size = tensor.dtype.itemsize
    for dim in shape:
        size *= dim
    return size
