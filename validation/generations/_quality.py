"""How good edits of generations are: read back, and against an inpainting by the full model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from retouch.models.scenes import read_scene
from retouch.region import Region
from retouch.sampling import Generation, Recording, TextToImage, Trajectory
from retouch.validation.generations._cases import Case, Kind
from retouch.validation.generations._stock import Frozen, Image, StockPipeline
from retouch.validation.psnr import psnr

__all__ = ["GUIDANCE", "POLICIES", "STEPS", "Outcome", "embeddings", "frozen_latents", "inside_psnr", "measure_quality"]

STEPS = 20
GUIDANCE = 3.0
POLICIES = ("fast", "balanced")
_TEXT = "encoder_hidden_states"
_PEAK = 255.0


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    Attributes:
        kind: what was asked for.
        policy: the region's policy.
        shown: whether the edit shows it.
        shown_anew: whether a full generation with the same seed shows it.
        shown_by_full_model: whether an inpainting by the full model shows it, with the same latents frozen.
        psnr: of the edit against that inpainting inside the region, in dB.
        latents_kept: whether the latents outside the region are the base's at every step, bit for bit.
        reach: how many pixels beyond the region the farthest changed pixel lies.
        images: base, edit, inpainting by the full model, full generation.
    """

    kind: Kind
    policy: str
    shown: bool
    shown_anew: bool
    shown_by_full_model: bool
    psnr: float
    latents_kept: bool
    reach: int
    images: tuple[Image, Image, Image, Image] = field(repr=False)


def measure_quality(
    pipeline: TextToImage, stock: StockPipeline, cases: Sequence[Case], tell: Callable[[str], None]
) -> Iterator[Outcome]:
    """The outcomes of the cases, in their order, under each policy.

    Args:
        pipeline: makes the edits.
        stock: makes the full generations of the same pipeline.
        cases: the edits.
        tell: called with a line before every case.
    """
    for number, case in enumerate(cases, 1):
        tell(f"case {number} of {len(cases)}: {case.kind.value}")
        base = generated(pipeline, case)
        text = embeddings(pipeline, case.after.caption)
        full = stock.generate(
            text, guidance=GUIDANCE, steps=STEPS, seed=case.seed, frozen=frozen_latents(base.trajectory, case.region)
        )
        anew = stock.generate(text, guidance=GUIDANCE, steps=STEPS, seed=case.seed)
        for policy in POLICIES:
            with pipeline.edit(base, case.region, case.after.caption, policy=policy) as edited:
                yield _outcome(case, policy, base, edited, full, anew)
        base.close()


def generated(pipeline: TextToImage, case: Case, recording: Recording | None = None) -> Generation:
    """The generation that a case edits."""
    return pipeline.generate(case.before.caption, steps=STEPS, guidance=GUIDANCE, seed=case.seed, recording=recording)


def embeddings(pipeline: TextToImage, prompt: str) -> NDArray[np.float32]:
    """The embeddings of the empty prompt and of a prompt."""
    conditions = pipeline.conditions(prompt, guidance=GUIDANCE)
    assert conditions.negative is not None, "guidance is on"
    return np.concatenate([conditions.negative[_TEXT], conditions.positive[_TEXT]])


def frozen_latents(base: Trajectory, region: Region, start: int = 0) -> Frozen:
    """What an inpainting by the full model keeps of a base."""
    before = [base.before(index) for index in range(len(base.steps) + 1)]
    return Frozen(before, region.resampled(base.latents.shape[2:]).mask, start)


def inside_psnr(got: Image, expected: Image, region: Region) -> float:
    """The ratio inside a region of the images, in dB."""
    return psnr((got.astype(np.float64) - expected)[region.mask], _PEAK)


def _outcome(case: Case, policy: str, base: Generation, edited: Generation, full: Image, anew: Image) -> Outcome:
    return Outcome(
        kind=case.kind,
        policy=policy,
        shown=case.is_shown_by(read_scene(edited.image)),
        shown_anew=case.is_shown_by(read_scene(anew)),
        shown_by_full_model=case.is_shown_by(read_scene(full)),
        psnr=inside_psnr(edited.image, full, case.region),
        latents_kept=_latents_kept(base.trajectory, edited.trajectory, case.region),
        reach=_reach(base.image, edited.image, case.region),
        images=(base.image, edited.image, full, anew),
    )


def _latents_kept(base: Trajectory, edited: Trajectory, region: Region) -> bool:
    outside = ~region.resampled(base.latents.shape[2:]).mask
    pairs = ((base.before(index), edited.before(index)) for index in range(len(base.steps) + 1))
    return all(one[..., outside].tobytes() == other[..., outside].tobytes() for one, other in pairs)


def _reach(before: Image, after: Image, region: Region) -> int:
    changed = np.argwhere((before != after).any(-1))
    inside = np.argwhere(region.mask)
    beyond = np.maximum(inside.min(0) - changed, changed - inside.max(0)).max(1, initial=0)
    return int(beyond.max(initial=0))
