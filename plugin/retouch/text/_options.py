"""How a text is sampled: thresholds, and choices where public implementations differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

from retouch.errors import SamplingError


class ZeroThreshold(Enum):
    """What an edit threshold of 0 means."""

    EDIT_FREELY = "edit freely"
    """Every token that is not the model's choice is replaced (transformers' remote code, SGLang)."""
    NO_EDITS = "no edits"
    """Editing is off (diffusers)."""


class MaskChoice(Enum):
    """What happens where the model chooses the mask token."""

    EXCLUDED = "excluded"
    """It gets no probability (dInfer); such choices are counted."""
    ALLOWED = "allowed"
    """The position stays masked and is tried again (transformers' remote code, SGLang, diffusers)."""


class EosRule(Enum):
    """When an end token ends the text."""

    FINISHED_BLOCK = "finished block"
    """Once its block is finished (transformers' remote code)."""
    COMMITTED = "committed"
    """Once no mask is left before it, whatever follows it in its block (diffusers)."""
    IGNORED = "ignored"
    """Never: the asked number of tokens is made."""


class Window(Enum):
    """What a block's tokens see."""

    BLOCKS = "blocks"
    """Their own block and earlier ones, as in training; keys and values of earlier blocks are exact."""
    ALL = "all"
    """Everything so far, and earlier blocks see later ones (diffusers passes a mask that means this to some versions
    of the model). Nothing can be cached."""


class Oscillation(Enum):
    """What is done about a block without masks whose edits lead back to where it was."""

    STOP = "stop"
    """It is stopped. Greedily, with the tokens that it would have had at the end of its budget."""
    RUN_ON = "run on"
    """Its budget of edits ends it (all published implementations)."""


def check_share(name: str, value: object) -> None:
    """Raises ``SamplingError`` if a number is not from 0 to 1."""
    _within(name, value, 0, 1)


def _within(name: str, value: object, low: float, high: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise SamplingError(f"Expected {name} to be a number from {low:g} to {high:g}, got {value!r}.")


def check_count(name: str, value: object, low: int) -> None:
    """Raises ``SamplingError`` if a number is no integer of at least ``low``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise SamplingError(f"Expected {name} to be an integer of at least {low}, got {value!r}.")


@dataclass(frozen=True)
class SamplerOptions:
    """How a text is sampled. The defaults are those of LLaDA2.1's code.

    Attributes:
        threshold: a masked token is set if its confidence is above this (M2T).
        edit_threshold: a token that is there is replaced if another has a confidence above this (T2T); ``None``: never.
        min_transfer: so many masked tokens are set in every step, the most confident ones, if fewer are above the
            threshold.
        steps: instead, the tokens of a block spread evenly over so many steps (diffusers' num_inference_steps).
        max_post_steps: so often a block without masks is read again for edits.
        temperature: 0 takes the likeliest token; above, tokens are drawn.
        top_k: draw among so many likeliest tokens.
        top_p: draw among the likeliest tokens that have so much of the probability together.
        stutter_penalty: taken off the logit of the token that stands before a position in its block (SGLang).
        zero_threshold: what an edit threshold of 0 means.
        mask_choice: what happens where the model chooses the mask.
        eos: when an end token ends the text.
        window: what a block's tokens see.
        oscillation: what is done about edits that go in circles.
        patience: with a temperature, a block without masks counts as oscillating once a token was edited more often.
        multi_block: so many blocks, counted from the text's start, see each other once all of them are filled, and
            are edited together (LLaDA2.1's multi-block editing); 1: none do.
    """

    threshold: float = 0.95
    edit_threshold: float | None = 0.9
    min_transfer: int = 1
    steps: int | None = None
    max_post_steps: int = 16
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    stutter_penalty: float = 0.0
    zero_threshold: ZeroThreshold = ZeroThreshold.EDIT_FREELY
    mask_choice: MaskChoice = MaskChoice.EXCLUDED
    eos: EosRule = EosRule.FINISHED_BLOCK
    window: Window = Window.BLOCKS
    oscillation: Oscillation = Oscillation.STOP
    patience: int = 3
    multi_block: int = 1

    def __post_init__(self) -> None:
        """Checks every number.

        Raises:
            SamplingError: one is out of its range.
        """
        check_share("threshold", self.threshold)
        if self.edit_threshold is not None:
            check_share("edit_threshold", self.edit_threshold)
        if self.top_p is not None:
            check_share("top_p", self.top_p)
        _within("temperature", self.temperature, 0, float("inf"))
        _within("stutter_penalty", self.stutter_penalty, 0, float("inf"))
        least = {"min_transfer": 1, "steps": 1, "max_post_steps": 0, "top_k": 1, "patience": 1, "multi_block": 1}
        for name, smallest in least.items():
            value = getattr(self, name)
            if value is not None or name not in {"steps", "top_k"}:
                check_count(name, value, smallest)
        if self.multi_block > 1 and (not self.edits or self.window is not Window.BLOCKS):
            raise SamplingError(
                f"Expected edits and Window.BLOCKS with multi_block={self.multi_block}, got edit_threshold "
                f"{self.edit_threshold} and {self.window}. Give an edit_threshold, or leave multi_block at 1."
            )

    @property
    def edits(self) -> bool:
        """Whether tokens that are there may be replaced."""
        off_at_zero = self.zero_threshold is ZeroThreshold.NO_EDITS
        return self.edit_threshold is not None and not (self.edit_threshold == 0 and off_at_zero)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest tokens are taken."""
        return self.temperature == 0

    def transfers(self, step: int, block: int) -> int:
        """How many masked tokens are set at least in a block's step."""
        if self.steps is None:
            return self.min_transfer
        return block // self.steps + (min(step, self.steps - 1) < block % self.steps)


QUALITY = SamplerOptions(threshold=0.7, edit_threshold=0.5)
"""LLaDA2.1's quality mode."""

SPEED = replace(QUALITY, threshold=0.5, edit_threshold=0.0)
"""LLaDA2.1's speed mode: many tokens at once, of which edits put right what is wrong. Meant for temperature 0."""

LOW_CONFIDENCE = replace(QUALITY, threshold=0.95, edit_threshold=None)
"""LLaDA2.0's rule: tokens are set when they are nearly certain, and stay."""

PRESETS: Mapping[str, SamplerOptions] = MappingProxyType(
    {
        "quality": QUALITY,
        "speed": SPEED,
        "low-confidence": LOW_CONFIDENCE,
        "published": SamplerOptions(),
    }
)
"""Options by name: the recommended modes of LLaDA2.1, LLaDA2.0's rule, and the defaults of LLaDA2.1's code."""


def preset(name: str) -> SamplerOptions:
    """The options of that name.

    Raises:
        SamplingError: there are none.
    """
    if name not in PRESETS:
        raise SamplingError(f"Expected one of the presets {', '.join(PRESETS)}, got {name!r}.")
    return PRESETS[name]


def chosen_options(options: SamplerOptions | str) -> SamplerOptions:
    """The options, or those of a preset."""
    return preset(options) if isinstance(options, str) else options


def checked_seed(seed: int) -> int:
    """The seed.

    Raises:
        SamplingError: it is no integer, or negative.
    """
    check_count("seed", seed, 0)
    return seed
