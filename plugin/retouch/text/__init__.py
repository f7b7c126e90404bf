"""Texts by block diffusion, and edits of them that cost what they touch. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # Texts made and edited
    "Candidate",
    "EditMode",
    "EditReport",
    "Generation",
    "Masks",
    "Replacement",
    "TextReport",
    "TextSession",
    "TextStream",
    # How they are sampled
    "PRESETS",
    "EosRule",
    "MaskChoice",
    "Oscillation",
    "SamplerOptions",
    "Window",
    "ZeroThreshold",
    "preset",
    # Texts on disk
    "TextRecord",
    "check_text_target",
    "read_text_record",
    # The parts
    "BlockDiffusionSampler",
    "Context",
    "FinishedBlock",
    "Reader",
    "Step",
    "Tally",
    "TextModel",
]

from retouch.text._candidate import Candidate
from retouch.text._edit import EditMode
from retouch.text._generation import EditReport, Generation, TextReport
from retouch.text._model import Context, TextModel
from retouch.text._options import (
    PRESETS,
    EosRule,
    MaskChoice,
    Oscillation,
    SamplerOptions,
    Window,
    ZeroThreshold,
    preset,
)
from retouch.text._reader import Reader
from retouch.text._run_files import TextRecord, check_text_target, read_text_record
from retouch.text._sampler import BlockDiffusionSampler, FinishedBlock
from retouch.text._session import TextSession
from retouch.text._settle import Tally
from retouch.text._spans import Masks, Replacement
from retouch.text._step import Step
from retouch.text._stream import TextStream
