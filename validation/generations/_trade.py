"""Memory against quality: what edits lose where fewer steps keep their states."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retouch.models.scenes import read_scene
from retouch.sampling import Recording, TextToImage
from retouch.validation.generations._cases import Case
from retouch.validation.generations._quality import (
    GUIDANCE,
    STEPS,
    embeddings,
    frozen_latents,
    generated,
    inside_psnr,
)
from retouch.validation.generations._stock import StockPipeline

__all__ = ["RECORDINGS", "Trade", "measure_trades"]

RECORDINGS: Mapping[str, Recording] = {
    "every step": Recording(),
    "every 2nd step": Recording(stride=2),
    "every 4th step": Recording(stride=4),
    "every 10th step": Recording(stride=10),
    "the last 10": Recording(last=10),
    "the last 5": Recording(last=5),
}


@dataclass(frozen=True)
class Trade:
    """What a recording gives, over some cases.

    Attributes:
        recording: its name.
        strength: share of the steps that edits compute.
        states_bytes: the states that a generation keeps.
        staleness: how many steps away the states lie at most.
        edit_ratio: CPU time of an edit over that of generating again with stock sessions (medians).
        psnr: median inside the region against an inpainting by the full model over the same steps, in dB.
        shown: share of the edits that show what was asked for.
        shown_by_full_model: the same of the inpaintings.
    """

    recording: str
    strength: float
    states_bytes: int
    staleness: int
    edit_ratio: float
    psnr: float
    shown: float
    shown_by_full_model: float


@dataclass(frozen=True)
class _Sample:
    states_bytes: int
    staleness: int
    edit_seconds: float
    again_seconds: float
    psnr: float
    shown: bool
    shown_by_full_model: bool


def measure_trades(
    pipeline: TextToImage, stock: StockPipeline, cases: Sequence[Case], tell: Callable[[str], None]
) -> Iterator[Trade]:
    """One trade per recording of :data:`RECORDINGS`, over the cases."""
    for name, recording in RECORDINGS.items():
        tell(f"recording {name}")
        samples = [_sample(pipeline, stock, case, recording) for case in cases]
        yield Trade(
            recording=name,
            strength=_strength(recording),
            states_bytes=samples[0].states_bytes,
            staleness=max(sample.staleness for sample in samples),
            edit_ratio=float(
                np.median([s.edit_seconds for s in samples]) / np.median([s.again_seconds for s in samples])
            ),
            psnr=float(np.median([sample.psnr for sample in samples])),
            shown=float(np.mean([sample.shown for sample in samples])),
            shown_by_full_model=float(np.mean([sample.shown_by_full_model for sample in samples])),
        )


def _strength(recording: Recording) -> float:
    return 1.0 if recording.last is None else recording.last / STEPS


def _sample(pipeline: TextToImage, stock: StockPipeline, case: Case, recording: Recording) -> _Sample:
    strength, text = _strength(recording), embeddings(pipeline, case.after.caption)
    start = STEPS - round(strength * STEPS)
    base = generated(pipeline, case, recording)
    clock = time.process_time()
    edited = pipeline.edit(base, case.region, case.after.caption, strength=strength)
    edit_seconds = time.process_time() - clock
    frozen = frozen_latents(base.trajectory, case.region, start)
    full = stock.generate(text, guidance=GUIDANCE, steps=STEPS, seed=case.seed, frozen=frozen)
    clock = time.process_time()
    stock.generate(text, guidance=GUIDANCE, steps=STEPS, seed=case.seed)
    again_seconds = time.process_time() - clock
    report = edited.trajectory.report
    assert report is not None, "an edit has one"
    sample = _Sample(
        base.bytes,
        max(report.staleness),
        edit_seconds,
        again_seconds,
        inside_psnr(edited.image, full, case.region),
        case.is_shown_by(read_scene(edited.image)),
        case.is_shown_by(read_scene(full)),
    )
    edited.close()
    base.close()
    return sample
