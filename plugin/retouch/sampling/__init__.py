"""Whole generations: a recorded sampling loop, and edits of what it made. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # What a loop runs
    "Conditions",
    "Denoiser",
    "Guidance",
    "Schedule",
    "Scheduler",
    # A generation, and what it keeps
    "Recording",
    "Step",
    "Trajectory",
    "TrajectoryReport",
    "generate",
    # How far a loop is
    "Progress",
    "progress_bar",
    # Edits of it
    "Change",
    "MissingStates",
    "edit",
    "edit_many",
    # A text-to-image pipeline
    "GENERATION_FILE",
    "Generation",
    "GenerationRecord",
    "GenerationReport",
    "PromptEdit",
    "TextToImage",
    "check_generation_target",
    "read_generation_record",
    # Where to edit, and in which direction
    "Direction",
    "Injection",
    "Proposal",
    "propose_region",
]

from retouch.sampling._change import Change
from retouch.sampling._conditions import Conditions
from retouch.sampling._denoiser import Denoiser, Guidance
from retouch.sampling._direction import Direction, Injection
from retouch.sampling._edit import edit, edit_many
from retouch.sampling._generate import Progress, generate
from retouch.sampling._generation import Generation, GenerationReport
from retouch.sampling._generation_directory import (
    GENERATION_FILE,
    GenerationRecord,
    check_generation_target,
    read_generation_record,
)
from retouch.sampling._progress_bar import progress_bar
from retouch.sampling._prompt_edit import PromptEdit
from retouch.sampling._proposal import Proposal, propose_region
from retouch.sampling._recording import Recording
from retouch.sampling._schedule import Schedule, Scheduler
from retouch.sampling._states import MissingStates
from retouch.sampling._text_to_image import TextToImage
from retouch.sampling._trajectory import Step, Trajectory, TrajectoryReport
