"""A text-to-image pipeline whose images can be edited."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Bundle
from retouch.engines.ort import OrtEngine, Provider
from retouch.region import Region, RegionPolicy
from retouch.sampling._change import Change
from retouch.sampling._components import TEXT, Components
from retouch.sampling._conditions import Conditions
from retouch.sampling._decode_edits import decode_edits
from retouch.sampling._denoiser import Denoiser
from retouch.sampling._direction import Direction, Injection
from retouch.sampling._edit import edit_many
from retouch.sampling._generate import Callback, generate
from retouch.sampling._generation import Generation
from retouch.sampling._load_generation import load_generation
from retouch.sampling._parts import Parts
from retouch.sampling._prompt_edit import PromptEdit
from retouch.sampling._proposal import Proposal, propose_region
from retouch.sampling._recording import Recording
from retouch.sampling._schedule import Schedule, Scheduler
from retouch.sampling._states import MissingStates
from retouch.session import ENGINES, EditSession, GroupNormMode, WeightStorage, mode_of_generations
from retouch.states import StateStore


class TextToImage:
    """A pipeline of Stable Diffusion's kind that ``retouch export DIRECTORY`` wrote: generates images, and edits them.

    The constructor only stores its arguments; the parts load when they are first used.

    Example:
        >>> with TextToImage("scenes") as pipeline:
        ...     image = pipeline.generate("a red circle on the left, gray background", seed=1)
        ...     edited = pipeline.edit(image, mask, "a blue circle on the left, gray background")
    """

    def __init__(
        self,
        path: str | Path,
        providers: Sequence[Provider] | None = None,
        threads: int | None = None,
        *,
        scheduler: Scheduler | str | None = None,
        group_norm: GroupNormMode | None = None,
        store: StateStore | None = None,
        engine: str = ENGINES[0],
        weights: WeightStorage | str = WeightStorage.FLOAT32,
    ) -> None:
        """Stores the arguments.

        Args:
            path: the directory.
            providers: ONNX Runtime execution providers by preference; ``None`` means the CPU.
            threads: threads per run; ``None`` leaves the choice to the engine.
            scheduler: a scheduler of diffusers, or the name of one, which takes the options of the pipeline's own;
                ``None`` means that one.
            group_norm: how GroupNorm sees edits; ``None`` means ``cached`` for the decoder, and for the denoiser
                ``auto``, or ``corrected`` if it was not calibrated: another prompt moves what GroupNorm sees.
            store: where states are kept; ``None`` means in memory, until the pipeline closes.
            engine: what runs the denoiser and the decoder; see :class:`EditSession`. The text encoder always runs on
                ONNX Runtime.
            weights: how edits keep the weights of the denoiser and the decoder; see :class:`EditSession`.
        """
        self._path = Path(path)
        self._engine = OrtEngine(providers, threads)
        self._scheduler = scheduler
        self._session_options: dict[str, Any] = {
            "providers": providers,
            "threads": threads,
            "store": store,
            "engine": engine,
            "weights": weights,
        }
        self._group_norm = group_norm
        self._parts: Parts | None = None

    def open(self) -> Self:
        """The pipeline, with its parts loaded."""
        self._loaded()
        return self

    def close(self) -> None:
        """Free the sessions, and the states that are not in a store of the caller's own."""
        parts, self._parts = self._parts, None
        if parts is not None:
            parts.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def denoiser(self) -> Denoiser:
        """The denoiser, for :func:`retouch.sampling.generate` and its like."""
        return self._loaded().denoiser

    @property
    def image_shape(self) -> tuple[int, int]:
        """Height and width of the images."""
        return self._loaded().decoder.image_shape()

    def conditions(self, prompt: str, negative_prompt: str = "", guidance: float = 7.5) -> Conditions:
        """The denoiser's conditions for a prompt; a guidance scale of at most 1 switches guidance off."""
        encode = self._loaded().encode
        negative = {TEXT: encode(negative_prompt)} if guidance > 1 else None
        return Conditions({TEXT: encode(prompt)}, negative, guidance)

    def direction(self, source: str, target: str, injection: Injection = Injection.ADD) -> Direction:
        """The direction from one prompt to another, for :class:`PromptEdit`."""
        encode = self._loaded().encode
        return Direction({TEXT: encode(source)}, {TEXT: encode(target)}, injection)

    def generate(
        self,
        prompt: str,
        negative_prompt: str = "",
        *,
        steps: int = 20,
        guidance: float = 7.5,
        seed: int = 0,
        recording: Recording | None = None,
        callback: Callback | None = None,
    ) -> Generation:
        """An image of a prompt, recorded so that it can be edited.

        Args:
            prompt: what is asked for.
            negative_prompt: what guidance leads away from.
            steps: number of steps.
            guidance: scale of guidance; at most 1 switches it off.
            seed: seed of all noise.
            recording: which steps keep their states; ``None`` means all. The decoder keeps its own if any step does.
            callback: called after every step. What it raises ends the loop, and nothing of it is kept.

        Raises:
            RunError: the states do not fit into the store.
            SamplingError: the prompt is too long, or an option is out of range.
        """
        parts = self._loaded()
        conditions = self.conditions(prompt, negative_prompt, guidance)
        schedule = Schedule(self._own_scheduler, steps)
        trajectory = generate(parts.denoiser, schedule, conditions, seed=seed, recording=recording, callback=callback)
        try:
            image, run = parts.decoder.decode(trajectory.latents, record=bool(trajectory.recorded))
        except BaseException:
            trajectory.close()
            raise
        return Generation(image, prompt, negative_prompt, trajectory, decoded=run)

    def edit(
        self,
        generation: Generation,
        region: Region | NDArray[np.bool_],
        prompt: str | None = None,
        *,
        direction: tuple[Direction, float] | None = None,
        seed: int | None = None,
        strength: float = 1.0,
        policy: str | RegionPolicy | None = None,
        record: bool = False,
        missing: MissingStates = MissingStates.ERROR,
        callback: Callback | None = None,
    ) -> Generation:
        """The image with something else inside a region: see :class:`PromptEdit` and :meth:`edit_many`."""
        edits = [PromptEdit(region, prompt, direction, seed)]
        return self.edit_many(
            generation, edits, strength=strength, policy=policy, record=record, missing=missing, callback=callback
        )[0]

    def edit_many(
        self,
        generation: Generation,
        edits: Sequence[PromptEdit],
        *,
        strength: float = 1.0,
        policy: str | RegionPolicy | None = None,
        record: bool = False,
        missing: MissingStates = MissingStates.ERROR,
        callback: Callback | None = None,
    ) -> list[Generation]:
        """The images of several edits of one generation, in their order; none sees another's changes.

        Latents outside an edit's region stay the base's at every step, bit for bit, and so do pixels outside the region
        and the rows around it that the policy lets the decoder compute. Guidance is the base's.

        Args:
            generation: the base, which stays as it is.
            edits: the edits.
            strength: share of the steps that is computed, the last ones; the steps before them are the base's.
            policy: how far around a region to compute; ``None`` means the region's own, for a mask the default.
            record: whether the results will be edited further.
            missing: what to do where states of the base are gone.
            callback: called after every step. What it raises ends the edits, and nothing of them is kept.

        Raises:
            RegionError: a mask has another resolution than image and latents.
            RunError: states of the base are gone.
            SamplingError: a prompt is too long, or an option is out of range.
        """
        changes = [self._change(generation, one, policy) for one in edits]
        if generation.decoded is not None and missing is MissingStates.ERROR:
            _ = generation.decoded.states  # if they are gone, steps would be made for nothing
        trajectories = edit_many(
            generation.trajectory, changes, strength=strength, record=record, missing=missing, callback=callback
        )
        latents = [
            (one.prompt, change.region, made) for one, change, made in zip(edits, changes, trajectories, strict=True)
        ]
        return decode_edits(self._loaded().decoder, generation, latents, record=record, missing=missing)

    def load(self, path: str | os.PathLike[str]) -> Generation:
        """The generation that :meth:`Generation.save` wrote into a directory; edits of it are those of the saved one.

        It is no edit of another one any more. Runs that two loaded generations have in common, as an edit of the last
        steps and its base have, are one, and go with the first of them that is closed.

        Raises:
            RunError: it was made with another model.
            RunFileError: the directory is no generation, or a file is missing, truncated or changed.
            SamplingError: the scheduler makes other steps.
        """
        parts = self._loaded()
        return load_generation(Path(path), parts.denoiser, parts.decoder, self._own_scheduler)

    def propose_region(self, generation: Generation, prompt: str) -> Proposal:
        """Where another prompt would change an image; its regions are on the grid of the latents."""
        base = generation.trajectory
        edit = PromptEdit(Region.full(self.image_shape), prompt)
        return propose_region(base, edit.conditions(base.conditions, TEXT, self._loaded().encode))

    def _session(self, path: Path) -> EditSession:
        bundle = Bundle.open(path)
        mode = self._group_norm or mode_of_generations(bundle.manifest)
        return EditSession(bundle, group_norm=mode, **self._session_options)

    @cached_property
    def _own_scheduler(self) -> Scheduler:
        given = self._scheduler
        if given is None or isinstance(given, str):
            return Components.of(self._path).scheduler(given)
        return given

    def _loaded(self) -> Parts:
        if self._parts is None:
            self._parts = Parts.load(Components.of(self._path), self._session, self._engine)
        return self._parts

    def _change(self, base: Generation, edit: PromptEdit, policy: str | RegionPolicy | None) -> Change:
        parts, conditions = self._loaded(), base.trajectory.conditions
        asked = edit.conditions(conditions, TEXT, parts.encode)
        region = edit.on_latents(self.image_shape, parts.denoiser.latents_shape[2:], policy)
        return Change(region, None if asked is conditions else asked, edit.seed)
