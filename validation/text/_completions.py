"""Completions of code that a network has not seen, and whether Python accepts them."""

from __future__ import annotations

import ast
import codeop
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from retouch.models.code_lm import python_source

__all__ = ["CodeScore", "Completion", "Verdict", "code_prompts", "judge", "score_code"]

_PROMPT_LINES = 3


class Verdict(Enum):
    """What Python says of a text, cut at its last full line."""

    ACCEPTED = "accepted"
    """``ast.parse`` takes it."""
    UNFINISHED = "unfinished"
    """It does not, but lines could follow that make it take it."""
    REFUSED = "refused"


@dataclass(frozen=True)
class Completion:
    """A completed text.

    Attributes:
        text: prompt and completion.
        ended: whether the network ended it.
        tokens: new tokens.
        characters: new characters.
        forwards: reads of the network that they took.
        edited: tokens that were replaced.
    """

    text: str
    ended: bool
    tokens: int
    characters: int
    forwards: int
    edited: int = 0


@dataclass(frozen=True)
class CodeScore:
    """What completing texts came to.

    Attributes:
        accepted: share that ``ast.parse`` accepts.
        unfinished: share that it would accept if lines followed.
        tokens_per_forward: new tokens over reads.
        characters_per_forward: new characters over reads.
        edited: tokens that were replaced, per text.
    """

    accepted: float
    unfinished: float
    tokens_per_forward: float
    characters_per_forward: float
    edited: float


def code_prompts(count: int) -> list[str]:
    """The first lines of so many top-level functions and classes of the held-out files, evenly from all of them."""
    found = []
    for text in python_source(held_out=True):
        lines = text.splitlines(keepends=True)
        starts = [index for index, line in enumerate(lines) if line.startswith(("def ", "class "))]
        for start in starts:
            prompt = "".join(lines[start : start + _PROMPT_LINES])
            if judge(prompt) is not Verdict.REFUSED:
                found.append(prompt)
    step = max(len(found) // count, 1)
    return found[::step][:count]


def judge(text: str, *, whole: bool = False) -> Verdict:
    """What Python says of a text; ``whole`` if its last line is to count though no line feed is behind it."""
    kept = text if whole else text[: text.rfind("\n") + 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of code that is odd, such as an escape that does not exist
        try:
            ast.parse(kept)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
        else:
            return Verdict.ACCEPTED
        try:
            unfinished = codeop.compile_command(kept, symbol="exec") is None
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
            unfinished = False
    return Verdict.UNFINISHED if unfinished else Verdict.REFUSED


def score_code(prompts: list[str], complete: Callable[[str], Completion]) -> CodeScore:
    """Completes every prompt and has Python judge the texts."""
    made = [complete(prompt) for prompt in prompts]
    verdicts = [judge(one.text, whole=one.ended) for one in made]
    forwards = sum(one.forwards for one in made)
    return CodeScore(
        accepted=verdicts.count(Verdict.ACCEPTED) / len(made),
        unfinished=verdicts.count(Verdict.UNFINISHED) / len(made),
        tokens_per_forward=sum(one.tokens for one in made) / forwards,
        characters_per_forward=sum(one.characters for one in made) / forwards,
        edited=sum(one.edited for one in made) / len(made),
    )
