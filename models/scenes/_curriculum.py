"""The courses in their order: text encoder, autoencoder, denoiser, and the autoencoder's decoder once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import numpy as np

from retouch.models.scenes._assemble import assemble
from retouch.models.scenes._attention_course import Gaze, where_to_look
from retouch.models.scenes._denoise_course import Examples, denoise_loss, make_lesson
from retouch.models.scenes._draw import training_scenes
from retouch.models.scenes._examples import make_examples
from retouch.models.scenes._image_course import as_pixels, decoder_loss, image_loss
from retouch.models.scenes._networks import make_autoencoder, make_denoiser, make_scheduler, make_text_encoder
from retouch.models.scenes._scene import Scene
from retouch.models.scenes._text_course import hand_over, make_pupil, text_loss
from retouch.models.scenes._tokens import make_tokenizer
from retouch.models.scenes._training import Plan, Training

if TYPE_CHECKING:
    import torch
    from diffusers import AutoencoderKL, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTokenizer

__all__ = ["Schedule", "Watch", "train_pipeline"]


def _muon(trained: Sequence[torch.Tensor], rate: float) -> torch.optim.Optimizer:
    from retouch.models.scenes._muon import Muon

    return Muon(trained, rate)


_Loss: TypeAlias = "Callable[[torch.Generator], torch.Tensor]"
_Network = TypeVar("_Network", bound="torch.nn.Module")


@dataclass(frozen=True)
class Schedule:
    """How long every network is trained, and on how much at a time.

    Attributes:
        text: the text encoder's plan.
        images: the autoencoder's.
        denoiser: the denoiser's.
        decoder: the plan for the autoencoder's decoder alone; latents stay as the denoiser learned them.
        examples: scenes that the denoiser learns from, in units of 64.
        captions: captions in a step.
        scenes: scenes in a step of the autoencoder and of the denoiser.
        gaze: how much it counts where the denoiser reads captions.
    """

    text: Plan = field(default_factory=lambda: Plan(360, 1e-3, 0.99))
    images: Plan = field(default_factory=lambda: Plan(500, 2e-3, 0.99))
    denoiser: Plan = field(default_factory=lambda: Plan(1_800, 2e-3, 0.99, optimizer=_muon))
    decoder: Plan = field(default_factory=lambda: Plan(600, 1e-3, 0.99))
    examples: int = 24_576
    captions: int = 64
    scenes: int = 16
    gaze: float = 0.1


@dataclass(frozen=True)
class Watch:
    """Who is told how it goes.

    Attributes:
        report: gets the name of a course, the number of a step, and its loss.
        check: gets the number of a step and the pipeline as it is then, the denoiser's weights averaged.
        check_every: steps of the denoiser between two checks.
    """

    report: Callable[[str, int, float], None]
    check: Callable[[int, StableDiffusionPipeline], None]
    check_every: int = 500


def train_pipeline(folder: Path, schedule: Schedule, watch: Watch) -> StableDiffusionPipeline:
    """The trained pipeline. Every course goes on where it was stopped, from what lies in the folder.

    Args:
        folder: for checkpoints, logs and examples.
        schedule: how long to train.
        watch: who is told how it goes.
    """
    tokenizer = make_tokenizer(folder / "tokenizer")
    pupil = _train_pupil(folder, schedule, watch, tokenizer)
    text_encoder = cast("CLIPTextModel", pupil["text_encoder"])
    autoencoder = _train_autoencoder(folder, schedule, watch)
    with _half():
        examples = make_examples(folder / "examples.pt", schedule.examples, tokenizer, text_encoder, autoencoder)
    denoiser = _denoiser()
    hand_over(pupil, denoiser)
    training = Training(folder / "denoiser", denoiser, schedule.denoiser)

    def pipeline() -> StableDiffusionPipeline:
        averaged = _denoiser(training.averaged())
        return assemble(tokenizer, text_encoder, autoencoder, averaged, examples.scale)

    def report(step: int, loss: float) -> None:
        watch.report("denoiser", step, loss)
        if step % watch.check_every == 0:
            watch.check(step, pipeline())

    training.run(_denoiser_loss(denoiser, pupil, examples, schedule), report)
    _train_decoder(folder, schedule, watch, autoencoder)
    return pipeline()


def _train_pupil(folder: Path, schedule: Schedule, watch: Watch, tokenizer: CLIPTokenizer) -> torch.nn.ModuleDict:
    pupil = _seeded(0, lambda: make_pupil(make_text_encoder(tokenizer)))

    def loss(generator: torch.Generator) -> torch.Tensor:
        with _half():
            return text_loss(pupil, tokenizer, _scenes(generator, schedule.captions))

    _take(Training(folder / "text", pupil, schedule.text), loss, watch, "text encoder")
    return pupil


def _train_autoencoder(folder: Path, schedule: Schedule, watch: Watch) -> AutoencoderKL:
    autoencoder = _seeded(1, make_autoencoder)

    def loss(generator: torch.Generator) -> torch.Tensor:
        with _half():
            return image_loss(autoencoder, as_pixels(_scenes(generator, schedule.scenes)), generator)

    _take(Training(folder / "autoencoder", autoencoder, schedule.images), loss, watch, "autoencoder")
    return autoencoder


def _train_decoder(folder: Path, schedule: Schedule, watch: Watch, autoencoder: AutoencoderKL) -> None:
    for part in (autoencoder.post_quant_conv, autoencoder.decoder):
        part.requires_grad_(requires_grad=True)

    def loss(generator: torch.Generator) -> torch.Tensor:
        with _half():
            return decoder_loss(autoencoder, as_pixels(_scenes(generator, schedule.scenes)), generator)

    _take(Training(folder / "decoder", autoencoder, schedule.decoder), loss, watch, "decoder")


def _take(training: Training, loss: _Loss, watch: Watch, name: str) -> None:
    """Takes a course to its end and leaves the network with averaged weights, not to be changed further."""
    training.run(loss, lambda step, value: watch.report(name, step, value))
    training.network.load_state_dict(training.averaged())
    training.network.eval().requires_grad_(requires_grad=False)


def _denoiser_loss(
    denoiser: UNet2DConditionModel, pupil: torch.nn.ModuleDict, examples: Examples, schedule: Schedule
) -> _Loss:
    gaze = Gaze(denoiser)
    scheduler = make_scheduler()

    def loss(generator: torch.Generator) -> torch.Tensor:
        lesson = make_lesson(examples, scheduler, generator.initial_seed(), schedule.scenes)
        wanted = where_to_look(pupil, lesson.text)
        with _half():
            return denoise_loss(denoiser, lesson) + schedule.gaze * gaze.loss(wanted)

    return loss


def _denoiser(state: dict[str, torch.Tensor] | None = None) -> UNet2DConditionModel:
    import torch

    denoiser = _seeded(2, make_denoiser).to(memory_format=torch.channels_last)
    if state is not None:
        denoiser.load_state_dict(state)
        denoiser.eval()
    return denoiser


def _scenes(generator: torch.Generator, count: int) -> list[Scene]:
    return training_scenes(np.random.default_rng(generator.initial_seed()), count)


def _seeded(seed: int, make: Callable[[], _Network]) -> _Network:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def _half() -> torch.autocast:
    import torch

    return torch.autocast("cpu", torch.bfloat16)
